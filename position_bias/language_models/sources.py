"""What jobs and settings both know of models and texts. It is free of torch.

It stands apart from the settings, so that another bound or another name there reruns no job.
"""

WITH_ALIBI = ("bloom", "mpt", "falcon")  # the other families of `families` know positions in other ways
PACKAGE = "package:"  # begins a source that is a Python package with a model in it
OFFLINE = "offline"  # the folder of the tokenizer of models trained here; every model of the hub has its own
TRAINED_CONTEXT = (
    2048  # tokens that an MPT or a Llama trained here takes, or as many as it is trained on where that is more
)


def is_directory(source: str) -> bool:
    """Whether a `source` means a directory, there or not; an id of the hub starts with a letter or digit."""
    return source.startswith(("/", "."))


def is_package(source: str) -> bool:
    """Whether a `source` means a Python package with a model in it."""
    return source.startswith(PACKAGE)
