from position_bias.drawing import scorecard, style
from position_bias.running import artifacts, runtime
from position_bias.verdicts.scorecard import SCORECARD_COLUMNS

with runtime.job(snakemake.log[0]), style.figure_style():
    table = artifacts.read_table(snakemake.input.scorecard, SCORECARD_COLUMNS, undefined=True)
    style.save(scorecard.overview(table), *(snakemake.output[suffix] for suffix in ("pdf", "svg", "png")))
    for paper, claims in table.groupby("paper", sort=False):
        pages = (snakemake.output[f"{paper}_{suffix}"] for suffix in ("pdf", "svg", "png"))
        style.save(scorecard.of_paper(claims), *pages)
