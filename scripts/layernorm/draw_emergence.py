from position_bias.drawing import style
from position_bias.emergence import figures, gaps
from position_bias.layernorm import figures_networks
from position_bias.running import runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    tests = gaps.read(snakemake.input.curves)
    alike = gaps.curves(tests[tests["encoding"] == "none"])
    (vocabulary,), (depth,) = alike["vocabulary"].unique(), alike["depth"].unique()
    told = f"causal mask, no encoding; {figures.networks(vocabulary, 'none', True)}; {depth} layers"
    style.save(figures_networks.emergence(alike, snakemake.params.level, told), *snakemake.output)
