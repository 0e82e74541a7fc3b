from position_bias.card import beside
from position_bias.language_models import measured
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    params, out = snakemake.params, snakemake.output
    measurements = zip(params.titles, snakemake.input.measured, strict=True)
    models = {name: beside.Model(*measured.read(path)) for name, path in measurements}
    ratios = beside.ratios(models, params.bootstrap, params.level, params.seed)
    artifacts.write_table(out.ratios, ratios)
    page = beside.page(snakemake.wildcards.card, params.titles, params.text, models, ratios, params.level)
    with runtime.whole_file(out.page) as partial:
        partial.write_text(page, encoding="utf-8")
