import pandas as pd
import torch

from position_bias.emergence import training
from position_bias.emergence.task import for_vocabulary
from position_bias.retrieval import profiles
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    torch.set_num_threads(snakemake.threads)
    task, tables = for_vocabulary("gaussian", snakemake.params.task), []
    for path in snakemake.input.weights:
        labels = artifacts.read_labels(path)
        members = training.named(labels["members"])
        weights = {name: torch.from_numpy(value) for name, value in artifacts.read_tensors(path).items()}
        table = profiles.table(task, members, weights, labels["depth"], labels["residual"], snakemake.params.sequences)
        tables.append(table.assign(**{name: labels[name] for name in ("study", "residual", "depth")}))
    artifacts.write_table(snakemake.output[0], pd.concat(tables, ignore_index=True))
