from itertools import product

import pandas as pd

from position_bias.released import profiles, written
from position_bias.released.models import MODELS, VARIANTS
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    schedule = written.read_schedule(snakemake.input.mixing, snakemake.input.content)
    slopes = written.read_slopes(snakemake.input.slopes)
    head_dim = MODELS[snakemake.wildcards.model].head_dim
    wanted = product(snakemake.params.lengths, VARIANTS)
    for path, (n, variant) in zip(snakemake.output, wanted, strict=True):
        row = profiles.profile(n, variant, schedule, slopes, head_dim)
        artifacts.write_table(path, pd.DataFrame({"position": range(n), "value": row}))
