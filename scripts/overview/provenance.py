import json

from position_card.core import provenance, runtime

with runtime.job(snakemake.log[0]):
    record = provenance.record(snakemake.config)
    with runtime.whole_file(snakemake.output[0]) as partial:
        partial.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
