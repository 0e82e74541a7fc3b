# Which files the rules of retrieval read, worked out from the configuration.

RETRIEVAL = config["retrieval"]


def retrieval_networks(wildcards):
    """The networks of a study at a depth, by their names."""
    return RETRIEVAL["networks"][f"{wildcards.study}/depth{wildcards.depth}"]


def retrieval_trained(file, studies=RETRIEVAL["networks"]):
    """A file of each of the studies, STUDY/depthLAYERS; of all that are trained, unless others are named."""
    return [f"results/retrieval/{name}/{file}" for name in studies]
