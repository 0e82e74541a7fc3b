from position_bias.card import figures
from position_bias.drawing import style
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    inputs, params, columns = snakemake.input, snakemake.params, ("n", "prompts", "value")
    paths = zip(params.models, inputs.layers, inputs.profiles, inputs.distances, strict=True)
    shown = {
        name: figures.Tables(*(figures.longest(artifacts.read_table(path, columns)) for path in of_model))
        for name, *of_model in paths
    }
    style.save(figures.card(shown, params.text), *snakemake.output)
