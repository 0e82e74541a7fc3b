"""The pages of the configuration have every key of the default."""

import re

from tests.configurations import DEFAULT, ROOT, leaves

# mappings whose keys are names: on the page, NAME stands for each
NAMED = r"datasets|models|hub_models|structural\.pretrained\.models|"
NAMED += r"postnorm\.(?:set_complement|languages)\.lengths|postnorm\.set_complement\.learning_rate"


def test_every_value_of_the_default_has_a_row():
    names = ("configuration", "configuration-networks")  # make check asks whether they are up to date
    page = "".join((ROOT / f"docs/{name}.md").read_text() for name in names)
    keys = {re.sub(rf"^({NAMED})\.[^.]+", r"\1.NAME", ".".join(path)) for path in leaves(DEFAULT)}
    assert len(keys) > 100
    assert [key for key in keys if f"| `{key}` | " not in page] == []
