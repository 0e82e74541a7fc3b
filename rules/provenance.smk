# What made the results. Out: results/provenance.json, after every figure and table. A new commit alone makes nothing out
# of date: the record is that of the run which last built something.


rule provenance:
    """Record code, versions, machine, seeds, configuration, and the time of every stage."""
    input:
        library=library("provenance.py"),
        results=[
            rules.structural.input,
            rules.emergence.input,
            rules.layernorm.input,
            rules.postnorm.input,
            rules.scorecard.output,
            rules.scorecard_figure.output,
        ],
    output:
        "results/provenance.json",
    log:
        "logs/provenance.log",
    benchmark:
        "results/benchmarks/provenance.tsv"
    conda:
        "../envs/language-models.yaml"
    threads: 1
    resources:
        mem_mb=memory(500),
        runtime=10,
    script:
        "../scripts/provenance.py"
