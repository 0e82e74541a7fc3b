from pathlib import Path

from position_card.core import artifacts, runtime
from position_card.models import data_sets, hub
from position_card.texts import tokens
from position_card.texts.prompts import sample_prompts

with runtime.job(snakemake.log[0]):
    dataset, n = snakemake.wildcards.dataset, int(snakemake.wildcards.n)
    prompts = sample_prompts(
        data_sets.texts(Path(snakemake.input.test).parent, "test"),
        tokens.open_tokenizer(hub.model_place(snakemake.input.tokenizer)),
        n,
        snakemake.params.prompts,
        snakemake.params.taken,
        runtime.seed(snakemake.params.seed, "prompts", dataset, n),
    )
    artifacts.write_tensors(snakemake.output[0], prompts._asdict(), dataset=dataset, n=n)
