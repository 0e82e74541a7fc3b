from pathlib import Path

import pandas as pd

from position_bias.drawing import style
from position_bias.released import figures
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    mixing = pd.concat(
        artifacts.read_table(path, ["layer", "lambda"]).assign(model=path.parts[-3], dataset=path.parts[-2])
        for path in map(Path, snakemake.input.mixing)
    )
    style.save(figures.fig4(mixing), *snakemake.output)
