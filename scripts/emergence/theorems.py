from position_bias.emergence import checks_theory, theory
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    numbers, out = snakemake.params.numbers, snakemake.output
    verdicts = checks_theory.table(**numbers, scale=snakemake.params.scale)
    for path in (out.csv, out.md):
        artifacts.write_table(path, verdicts)
    run = {name: numbers[name] for name in ("tokens", "layers", "draws", "seed")}
    artifacts.write_table(out.convergence, theory.convergence(**run))
    artifacts.write_table(out.decay, theory.decay_profiles(numbers["peak_tokens"]))
    artifacts.write_table(out.rope, theory.rope_profiles(numbers["peak_tokens"]))
    artifacts.write_table(out.peaks, theory.decay_peaks(numbers["peak_tokens"]))
