# Which files the rules of retrieval read, worked out from the configuration.

RETRIEVAL = config["retrieval"]


def retrieval_networks(wildcards):
    """The networks of a study at a depth, by their names."""
    return RETRIEVAL["networks"][f"{wildcards.study}/depth{wildcards.depth}"]


def retrieval_trained(file):
    """A file of each of the studies, at each depth that it is trained with."""
    return [f"results/retrieval/{name}/{file}" for name in RETRIEVAL["networks"]]
