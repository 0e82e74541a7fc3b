# Which tables of evidence/ are built, and what the report is of, worked out from the configuration.


def tables_of_the_group(_):
    """The tables of the group that the configuration names; where it names none, there is nothing to plan."""
    kept = [
        *(rules.emergence_evidence.output if EVIDENCE["emergence"] else []),
        *(rules.emergence_evidence_sinks.output if EVIDENCE_SINKS else []),
        *(rules.postnorm_evidence.output if EVIDENCE["postnorm"] else []),
        *(rules.structural_evidence.output if EVIDENCE["structural"] else []),
        *(rules.structural_evidence_rotary.output if EVIDENCE["rotary"] else []),
        *(rules.retrieval_evidence.output if EVIDENCE["retrieval"] else []),
    ]
    if EVIDENCE["group"] is None or not kept:
        sys.exit(
            "error: config: evidence names no group, or nothing to keep of it; add an overlay of config/evidence/ to "
            "--configfile"
        )
    return expand(kept, group=EVIDENCE["group"])


def report_targets(_):
    """What the report is of: everything, and the figures of the released numbers where they are built."""
    published = rules.all_published.input if config["released"]["source"] else []
    built = published and all(map(os.path.exists, published))
    return ["all", "all_published"] if built else ["all"]
