from position_bias.layernorm import tables
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    numbers, out = snakemake.params.numbers, snakemake.output
    of_all = {name: numbers[name] for name in ("tokens", "width", "strength", "sequences", "seed")}
    alphas = numbers["anisotropy"]
    sampling = tables.Sampling(**of_all, level=snakemake.params.level)
    maps = tables.score_maps(**of_all, layers=numbers["layers"], alphas=alphas)
    artifacts.write_tensors(out.scores, maps, **of_all, layers=numbers["layers"], anisotropy=alphas)
    artifacts.write_table(out.closed_form, tables.closed_form_rows(sampling, alphas))
    artifacts.write_table(out.anisotropy, tables.anisotropy_curves(sampling, tables.evenly(**numbers["curve"]), alphas))
    depth = tables.depth_curves(sampling, numbers["depth_anisotropy"], numbers["deepest"])
    artifacts.write_table(out.depth, depth)
    artifacts.write_table(out.moments, tables.moments_curves(sampling, numbers["layers"]))
