import re
from pathlib import Path

from position_bias import settings
from tests.configurations import DEFAULT
from tools import reference

ROOT = Path(__file__).parents[2]
PAGE = reference.page(settings.Settings, DEFAULT)


def test_every_value_of_the_default_has_a_row():
    def keys(node, path=""):
        if not isinstance(node, dict):
            yield path
            return
        for name, inner in node.items():
            yield from keys(inner, f"{path}.{name}" if path else name)

    named = r"datasets|models|hub_models|structural\.pretrained\.models|"
    named += r"postnorm\.(set_complement|languages)\.lengths|postnorm\.set_complement\.learning_rate"

    def shown(key):
        """As the page has it, where a name of the configuration stands in a key."""
        return re.sub(rf"^(?P<mapping>{named})\.[^.]+", r"\g<mapping>.NAME", key)

    for key in keys(DEFAULT):
        assert f"| `{shown(key)}` | " in PAGE or DEFAULT.get(key) == {}, key
