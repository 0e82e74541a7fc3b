# What all jobs that run a script have alike is said here, once. Included after the last rule.
#
# Code:       a digest of the definitions of the library that it runs, so that an edit of one rebuilds what was made with it.
# Log:        logs/, with the path of the first output, unless the rule names another.
# Benchmark:  results/benchmarks/, with the path of the log.
# Conda:      envs/figures.yaml for figures and envs/analysis.yaml for the others, unless the rule names another.
# Group:      figures and tables take seconds, so that those of a wing go to a cluster in one submission.
# Partition:  of a cluster, that of jobs with a GPU stands in a profile for SLURM as gpu_partition, which SLURM does not know.
# Memory and minutes of a rule that names none stand in the profiles.

for job in filter(lambda rule: "gpu_partition" in rule.resources, workflow.rules):
    gpu, named = (
        job.resources.get("gpu"),
        workflow.resource_settings.overwrite_resources.get(job.name, {}),
    )
    if not (gpu.is_evaluable() or gpu.value):
        job.resources["gpu_model"] = None
    elif "slurm_partition" not in named:
        job.resources["slurm_partition"] = job.resources["gpu_partition"].with_name("slurm_partition")
    job.resources["gpu_partition"] = None

digest = digests.KeptDigests(ROOT, Path(".snakemake/digests.json")).digest


def code_of(rule):
    """A param that is worked out where a job is planned, so that the process of one job reads what this job reaches."""
    path = os.path.relpath(Path(rule.snakefile).parent / rule.script, ROOT)
    functions = tuple(filter(None, map(rule.params.get, ("makes", "readable"))))
    return lambda wildcards: digest(path, functions)


for job in filter(lambda rule: rule.script, workflow.rules):
    first = Path(re.sub(r"^results/", "", job.output[0]))
    job.set_params(code=code_of(job))
    job.log_modifier = job.benchmark_modifier = job.output_modifier
    if not job.log:
        job.set_log(f"logs/{first.with_suffix('')}.log")
    job.benchmark = re.sub(r"^logs/(.*)\.log$", r"results/benchmarks/\1.tsv", job.log[0])
    if not job.conda_env:
        of_figures = first.parts[0] == "figures"
        job.conda_env = f"../envs/{'figures' if of_figures else 'analysis'}.yaml"
    if not job.ruleinfo.group and first.parts[0] in ("figures", "tables"):
        job.group = first.parts[1]
