from pathlib import Path

import pandas as pd

from position_bias import artifacts, runtime
from position_bias.plots import structural_released, style

with runtime.job(snakemake.log[0]), style.figure_style():
    mixing = pd.concat(
        artifacts.read_table(path, ["layer", "lambda"]).assign(model=path.parts[-3], dataset=path.parts[-2])
        for path in map(Path, snakemake.input.mixing)
    )
    style.save(structural_released.fig4(mixing), *snakemake.output)
