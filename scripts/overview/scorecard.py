import pandas as pd

from position_bias.running import artifacts, runtime
from position_bias.verdicts import scorecard, verdict
from position_bias.verdicts.claim import registry, tables

with runtime.job(snakemake.log[0]):
    out = snakemake.output
    claims = registry(snakemake.input.claims)
    checks = {
        name: artifacts.read_table(path, verdict.COLUMNS)
        for name, path in zip(tables(claims), snakemake.input.checks, strict=True)
    }
    values = pd.read_csv(snakemake.input.published, dtype=str)  # as printed, zeros at the end included
    published = dict(zip(values["id"], values["value"], strict=True))
    table = scorecard.scorecard(claims, checks, published, snakemake.params.level)
    artifacts.write_table(out.csv, table)
    compared = scorecard.comparisons(claims, checks, snakemake.params.level)
    artifacts.write_table(out.comparisons, compared)
    readable = scorecard.compared(compared).to_markdown(index=False)
    pages = {out.md: scorecard.page(table), out.txt: scorecard.short(table), out.comparisons_md: f"{readable}\n"}
    for path, text in pages.items():
        with runtime.whole_file(path) as partial:
            partial.write_text(text, encoding="utf-8")
