from pathlib import Path

from position_card.core import runtime
from position_card.models import data_sets
from position_card.texts import tokens

with runtime.job(snakemake.log[0]):
    texts = (text for path in snakemake.input.train for text in data_sets.texts(Path(path).parent, "train"))
    tokenizer = tokens.train_tokenizer(texts, snakemake.params.vocabulary)
    tokens.save_tokenizer(tokenizer, snakemake.output[0])
