import numpy as np
import pandas as pd

from position_bias.released import schedules, slopes, sources
from position_bias.released.models import MODELS
from position_card.core import artifacts, runtime

with runtime.job(snakemake.log[0]):
    contents = sources.read(snakemake.params.source, snakemake.params.sha256)
    of_models = schedules.from_contents(snakemake.params.source, contents).values()
    tables = zip(snakemake.output.mixing, snakemake.output.content, of_models, strict=True)
    for mixing, content, schedule in tables:
        layer, head = np.indices(schedule.base.shape)
        columns = {"layer": layer, "head": head, "base": schedule.base, "diagonal": schedule.diagonal}
        by_layer = pd.DataFrame({"layer": range(len(schedule.mixing)), "lambda": schedule.mixing})
        artifacts.write_table(mixing, by_layer)
        artifacts.write_table(content, pd.DataFrame({name: values.ravel() for name, values in columns.items()}))
    for path, model in zip(snakemake.output.slopes, MODELS.values(), strict=True):
        artifacts.write_table(path, pd.DataFrame({"head": range(model.heads), **slopes.slopes_of(model)}))
    facts = {"files": " ".join(sorted(contents)), "sha256": sources.fingerprint(contents)}
    artifacts.write_table(snakemake.output.source, pd.DataFrame([facts]))
