"""What is shipped for `postnorm`; what a configuration may not ask of it is listed in running/test_configuration.py."""

from position_bias.postnorm import schemes, tasks


def test_the_tasks_of_what_is_shipped_are_tasks_that_fit(shipped):
    for part in ("set_complement", "languages"):
        for name, length in shipped["postnorm"][part]["lengths"].items():
            assert schemes.part_of(name) == part
            assert tasks.task(name).name == name
            assert 1 <= length <= (tasks.task(name).longest or length)
