"""What a configuration may not ask of `postnorm`; its faults one by one are listed in running/test_configuration.py."""

import pytest

from position_bias.postnorm import schemes, settings, tasks
from tests.unit.conftest import overlaid


def test_the_tasks_of_what_is_shipped_are_tasks_that_fit(shipped):
    for part in ("set_complement", "languages"):
        for name, length in shipped["postnorm"][part]["lengths"].items():
            assert schemes.part_of(name) == part
            assert tasks.task(name).name == name
            assert 1 <= length <= (tasks.task(name).longest or length)


@pytest.mark.parametrize("length", [1, 7, 8, 100])
def test_a_set_is_a_fault_just_where_it_has_no_complement(length):
    config = overlaid([])
    complement = config["postnorm"]["set_complement"]
    complement["lengths"]["set-complement-8"] = length
    complement["learning_rate"]["set-complement-8"] = complement["learning_rate"]["set-complement-16"]
    assert bool(list(settings.faults(config))) == (length > tasks.set_complement(8).longest)


@pytest.mark.parametrize("name", ["set-complement-64", "dyck-3-5", "averages", "dimension", ""])
def test_evidence_of_what_is_not_trained_is_a_fault_and_each_is_named(name):
    config = overlaid([])
    config["evidence"]["postnorm"] = ["tomita-5", name, "copy-3"]
    assert list(settings.faults(config)) == [
        f"evidence.postnorm = {one!r} is not trained; use some of set-complement-16, set-complement-32, maximum-10, "
        "dyck-2-3, tomita-1, tomita-2, tomita-3, tomita-4, tomita-5, tomita-6, tomita-7, averaging"
        for one in (name, "copy-3")
    ]
