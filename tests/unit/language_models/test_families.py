import pytest
import torch

from position_bias.language_models import families
from position_card.models.families import sizes

ARCHITECTURE = {"layers": 2, "heads": 4, "hidden": 16, "initializer_range": 0.3}


def small(family, seed=0):
    return families.build(family, ARCHITECTURE, vocabulary=64, context=32, seed=seed).eval()


@pytest.mark.parametrize("family", families.BUILDERS)
def test_a_model_is_of_the_real_class_and_size_and_its_seed_decides_it(family):
    models = small(family), small(family), small(family, seed=1)
    assert sizes(models[0].config) == (2, 4, 4)
    assert type(models[0]).__module__.startswith(f"transformers.models.{family}.")
    one, again, other = (torch.cat([p.flatten() for p in model.parameters()]) for model in models)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
