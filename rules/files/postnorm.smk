# Which files and settings the rules of postnorm read, worked out from the configuration.

POSTNORM = config["postnorm"]
POSTNORM_TASKS = [
    *POSTNORM["set_complement"]["lengths"],
    *POSTNORM["languages"]["lengths"],
]
WIDTHS_OF = f"set-complement-{POSTNORM['dimension']['vocabulary']}"
POSTNORM_COMMON = {name: POSTNORM[name] for name in ("warmup", "weight_decay", "test_sequences")}


def postnorm_part(task):
    """What the configuration says of tasks like this one."""
    return POSTNORM[schemes.part_of(task)]


def postnorm_length(task):
    """Length of the training sequences of a task."""
    return postnorm_part(task)["lengths"][task]


def postnorm_rates(task):
    """Learning rate of each scheme."""
    rates = postnorm_part(task)["learning_rate"]
    return rates[task] if task in POSTNORM["set_complement"]["lengths"] else rates


def postnorm_settings(task):
    """All else that decides how the networks of a task train."""
    settings = dict(postnorm_part(task), learning_rate=postnorm_rates(task))
    del settings["lengths"]
    return settings


def postnorm_tests(file, part):
    """A file of every task in a part of the configuration."""
    return [f"results/postnorm/{task}/{file}" for task in POSTNORM[part]["lengths"]]


def evidence_postnorm(file):
    """A file of each task that is kept."""
    return [f"results/postnorm/{task}/{file}" for task in EVIDENCE["postnorm"]]
