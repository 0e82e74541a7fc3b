import json
from pathlib import Path

from position_bias.running import provenance, runtime

with runtime.job(snakemake.log[0]):
    project = Path(snakemake.scriptdir).parents[1]
    record = provenance.record(snakemake.config, project, Path("results/benchmarks"))
    with runtime.whole_file(snakemake.output[0]) as partial:
        partial.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
