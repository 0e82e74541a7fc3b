from position_bias.workflow import calls
from position_card.core import runtime
from position_card.drawing import style

style.print_at(**snakemake.params.printed)
with runtime.job(snakemake.log[0]), style.figure_style():
    style.save(calls.make(snakemake), *snakemake.output, run_scale=snakemake.params.run_scale)
