# Every figure, table and other file that is made from files in seconds is a rule of its own, from a row of FIGURES, TABLES or
# FILES that a wing wrote (position_bias/workflow/rows.py says what a row holds). What the rows do not name, every_job.smk adds.


for item, row in FIGURES.items():

    rule:
        name:
            rule_name(item, row, "draw_")
        input:
            **row.files,
        output:
            **figure_outputs(item, row),
        log:
            *filter(None, [row.log]),
        wildcard_constraints:
            **row.wildcards,
        group:
            row.group
        conda:
            row.environment and f"../envs/{row.environment}.yaml"
        resources:
            **row.needs,
        params:
            **row.values,
            makes=row.makes,
            printed=config["figures"],
            run_scale=config["scale"],
        script:
            "../scripts/draw.py"

    workflow.get_rule(rule_name(item, row, "draw_")).docstring = row.says


for item, row in (TABLES | FILES).items():

    rule:
        name:
            rule_name(item, row)
        input:
            **row.files,
        output:
            **(table_outputs(item, row) if item in TABLES else {}),
            **row.outputs,
        log:
            *filter(None, [row.log]),
        wildcard_constraints:
            **row.wildcards,
        group:
            row.group
        conda:
            row.environment and f"../envs/{row.environment}.yaml"
        resources:
            **row.needs,
        params:
            **row.values,
            makes=row.makes,
            readable=row.readable,
        script:
            "../scripts/table.py"

    workflow.get_rule(rule_name(item, row)).docstring = row.says
