from position_bias.drawing import style
from position_bias.running import calls, runtime

style.print_at(**snakemake.params.printed)
with runtime.job(snakemake.log[0]), style.figure_style():
    style.save(calls.make(snakemake), *snakemake.output)
