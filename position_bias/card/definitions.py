"""What the words of a card mean; the page of a card defines those that it uses."""

import math
from collections.abc import Iterator

import pandas as pd

from position_bias.card.sentences import TREND_FROM

INFLUENCE = (
    "**Influence** of a token: the norm of the gradient of the probability of the most likely next token with respect "
    "to the embedding of that token. The norms are averaged over prompts, and their mean is divided by its sum: shares "
    "add up to 1, and a prompt with larger gradients counts for more. The *middle half* of a prompt is what stays "
    "without its first and its last quarter; *first / middle* and *last / middle* divide the influence of the first "
    "and of the last token by that of an average one there. The residual connection passes the last token on to the "
    "prediction, which gives it much of the influence in nearly every model; compare with an untrained copy."
)
LAMBDA = (
    "**Lambda** of a layer: |a| / (|x| + |a|), where x is the residual stream, the vector of a token that every layer "
    "adds to, as it enters the layer, and a what attention adds to it. 0: attention adds nothing; 1/2: as much as was "
    "there. *Whole prompt*: norms over all tokens of a prompt, Eq. 1 of Herasimchyk et al. 2026. *Mean over tokens*: "
    "the same ratio token by token, then the mean. Whether lambda rises or falls with depth is said of models with at "
    "least {layers} layers, by Spearman's rank correlation. It depends on the order of the layers alone, so a bound of "
    "its interval can equal the value."
)
OF_GRADIENTS = (
    " *From gradients*, our addition: the same ratio of the two parts of the gradient, that which comes back through "
    "attention and that which passes it by."
)
NOT_SEPARABLE = (
    "**Not separable**: the interval holds the value that would mean no difference, so these prompts cannot tell."
)
ROLLOUT = (
    "**Attention rollout**: a prediction of influence from attention alone. Each layer mixes a token's own vector, "
    "with weight 1 - lambda, with those that it attends to, with weight lambda; multiplied over the layers this says "
    "how much of each input token arrives at the last one. Rollouts differ in the attention that they take:"
)
KINDS = {  # of rollouts, and the baselines
    "a": "*attention alone (a)*: every token attends to all earlier ones alike but for the ALiBi bias, and lambda is 1",
    "b": "*with lambda (b)*: the same attention, with the measured lambda",
    "c": "*with lambda and content (c)*: besides, each token attends to itself more or less than to others, by as much "
    "as was measured",
    "content-free": "*without content*: every token attends to itself and to all earlier ones alike, as far back as "
    "the layer reads",
    "logit-by-distance": "*logit by distance*: logits are the mean of those measured at each distance",
    "mean-query-key": "*mean query and key*: logits are those of the mean query and the mean key, turned by the rotary "
    "positions",
    "mean-attention": "*mean attention*: the measured attention, as a mean over prompts and heads",
    "uniform": "*baselines* know nothing of the model, but for its ALiBi bias or how far back its layers read: the "
    "same influence of every token, all influence on the last one, and the rollout without content with lambda = 1/2",
}


LOSS = (
    "**Loss**: the cross entropy of the last {last} tokens of each prompt, given all tokens before them. Two numbers "
    "give it a scale. A model that gives all {vocabulary:,} tokens of its vocabulary the same probability has a loss "
    "of ln {vocabulary:,} = {uniform:.3g} nats a token; an untrained model has somewhat more, since its probabilities "
    "are random. A model that knows only how often each token occurs in this text has about {entropy:.3g}. If the loss "
    "is not below the second number, the model cannot predict this text, and the card says little of how it reads "
    "texts that it can predict."
)


def definitions(values: pd.DataFrame, vocabulary: int, entropy: float, predicted: int) -> Iterator[str]:
    """A line for each word of a page whose numbers are in `values`, the third table of `profiles.compare`.

    `vocabulary` counts the tokens that the model knows, `entropy` is that of their frequencies in the text, in nats,
    and `predicted` counts the tokens of a prompt whose loss was measured.
    """
    yield f"- {INFLUENCE}"
    yield f"- {LAMBDA.format(layers=TREND_FROM)}{OF_GRADIENTS if 'backward' in set(values['estimator']) else ''}"
    yield f"- {LOSS.format(last=predicted, vocabulary=vocabulary, uniform=math.log(vocabulary), entropy=entropy)}"
    yield f"- {NOT_SEPARABLE}"
    yield f"- {ROLLOUT}"
    there = set(values["variant"])
    yield from (f"  - {said}." for variant, said in KINDS.items() if variant in there)
