# One page to read. In: every figure and table of `all`. Out: results/report.html, which needs no network and no other file.
# The configuration of this very run lies beside the log.


rule report:
    """Figures, tables and captions of everything, grouped by paper, and how each was made."""
    input:
        rules.all.input,
    output:
        "results/report.html",
    log:
        "logs/report.log",
    benchmark:
        "results/benchmarks/report.tsv"
    localrule: True
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=20,
    run:
        Path(f"{log}.json").write_text(json.dumps(config))
        shell(
            "{sys.executable:q} -m snakemake all --snakefile {ROOT}/Snakefile --configfile {log}.json "
            "--report {output:q} --nolock > {log:q} 2>&1"
        )
