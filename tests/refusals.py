"""How a mistake of a user ends: in one line that names what is wrong."""

from contextlib import contextmanager

import pytest

from position_card.core.runtime import InputError


@contextmanager
def refused(*named, by=InputError):
    """What is done within ends in an error of one line that names the key or the file, and the value."""
    with pytest.raises(by) as raised:
        yield raised
    line = str(raised.value)
    assert "\n" not in line
    assert [name for name in map(str, named) if name not in line] == [], line
