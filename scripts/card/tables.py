import json
from pathlib import Path

import pandas as pd

from position_bias.card import page, profiles
from position_bias.language_models import measured
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    params, out, name = snakemake.params, snakemake.output, snakemake.wildcards.card
    lengths, facts = measured.read(snakemake.input.measured)
    compared = {n: profiles.compare(found, params.bootstrap, params.level, params.seed) for n, found in lengths.items()}
    of_layers, of_profiles = (
        pd.concat([tables[place].assign(n=n) for n, tables in compared.items()], ignore_index=True) for place in (0, 1)
    )
    artifacts.write_table(out.layers, of_layers)
    artifacts.write_table(out.profile, of_profiles)
    artifacts.write_table(out.distances, pd.concat(map(measured.attention_table, lengths.values()), ignore_index=True))
    longest = max(lengths)
    layers, _, values = compared[longest]
    record = json.loads(Path(snakemake.input.model).read_text(encoding="utf-8"))
    text = json.loads(Path(snakemake.input.text).read_text(encoding="utf-8"))
    sources = {"model": page.origin(record), "text": page.origin(text)}
    with runtime.whole_file(out.page) as partial:
        partial.write_text(page.page(name, lengths, layers, values, facts, sources, params.level), encoding="utf-8")
