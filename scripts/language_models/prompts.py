from pathlib import Path

from position_card.core import artifacts, runtime
from position_card.models import hub, tokens

with runtime.job(snakemake.log[0]):
    dataset, n = snakemake.wildcards.dataset, int(snakemake.wildcards.n)
    prompts = tokens.sample_prompts(
        tokens.texts(Path(snakemake.input.test).parent, "test"),
        tokens.open_tokenizer(hub.model_place(snakemake.input.tokenizer)),
        n,
        snakemake.params.prompts,
        snakemake.params.taken,
        runtime.seed(snakemake.params.seed, "prompts", dataset, n),
    )
    artifacts.write_tensors(snakemake.output[0], prompts._asdict(), dataset=dataset, n=n)
