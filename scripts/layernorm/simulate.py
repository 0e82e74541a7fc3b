from position_bias.layernorm import simulation
from position_card.core import artifacts, runtime

with runtime.job(snakemake.log[0]):
    numbers, out = snakemake.params.numbers, snakemake.output
    of_all = {name: numbers[name] for name in ("tokens", "width", "strength", "sequences", "seed")}
    alphas = numbers["anisotropy"]
    sampling = simulation.Sampling(**of_all, level=snakemake.params.level)
    maps = simulation.score_maps(**of_all, layers=numbers["layers"], alphas=alphas)
    artifacts.write_tensors(out.scores, maps, **of_all, layers=numbers["layers"], anisotropy=alphas)
    artifacts.write_table(out.closed_form, simulation.closed_form_rows(sampling, alphas))
    artifacts.write_table(
        out.anisotropy, simulation.anisotropy_curves(sampling, simulation.evenly(**numbers["curve"]), alphas)
    )
    depth = simulation.depth_curves(sampling, numbers["depth_anisotropy"], numbers["deepest"])
    artifacts.write_table(out.depth, depth)
    artifacts.write_table(out.moments, simulation.moments_curves(sampling, numbers["layers"]))
