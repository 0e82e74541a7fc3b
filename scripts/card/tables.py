import json
from pathlib import Path

import pandas as pd

from position_bias.card import page, profiles
from position_bias.language_models import measured
from position_bias.rollout import comparison
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    params, out, card = snakemake.params, snakemake.output, snakemake.wildcards.card
    lengths, facts = measured.read(snakemake.input.measured)
    compared = {
        n: page.Compared(*profiles.compare(found, params.bootstrap, params.level, params.seed))
        for n, found in lengths.items()
    }

    def together(tables):
        counted = (table.assign(n=n, prompts=lengths[n].prompts) for n, table in tables.items())
        return pd.concat(counted, ignore_index=True)

    artifacts.write_table(out.layers, together({n: tables.layers for n, tables in compared.items()}))
    artifacts.write_table(out.profile, together({n: tables.profiles for n, tables in compared.items()}))
    artifacts.write_table(out.distances, together({n: measured.attention_table(found) for n, found in lengths.items()}))
    statistics = {n: comparison.summary(tables.values, params.level) for n, tables in compared.items()}
    artifacts.write_table(out.statistics, together(statistics))
    record = json.loads(Path(snakemake.input.model).read_text(encoding="utf-8"))
    text = json.loads(Path(snakemake.input.text).read_text(encoding="utf-8"))
    sources = {"model": page.origin(record), "text": page.origin(text)}
    written = page.page(card, params.title, lengths, compared, facts, sources, params.untrained, params.level)
    with runtime.whole_file(out.page) as partial:
        partial.write_text(written, encoding="utf-8")
