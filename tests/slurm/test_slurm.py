"""The toy graph on a real SLURM: the same bytes as a local run, a GPU a job, jobs that are cancelled and come again."""

import itertools
import os
import re
import subprocess
import time

import pytest

pytestmark = pytest.mark.all("a SLURM of its own, and the toy graph on it, take four minutes")

# As a user types it, but jobs with a GPU compute on the CPU, since the GPUs are none, and SLURM is asked more often
WITH_GPU = ("train", "measure", "measure_snapshot", "emergence_train", "layernorm_train", "postnorm_train")
PROFILE = (
    f"--workflow-profile profiles/slurm --config device=cpu --set-resources {' '.join(f'{r}:gpu=1' for r in WITH_GPU)} "
    "--slurm-init-seconds-before-status-checks 2 --seconds-between-status-checks 1 --latency-wait 10"
)
TARGETS = (  # every stage from text to figure for one model, and trainings of two other papers
    "figures/structural/fig2.pdf",
    "figures/structural/forces.pdf",
    "results/tables/structural/licences.csv",
    "results/measure/falcon/seed0/step0/standard-library/n32.safetensors",
    "results/emergence/gaussian/ends/depth2/curves.parquet",
    "results/layernorm/trained/pre-rms.parquet",
)
GROUP = "rule_measured_measure_measure_snapshot"
TOGETHER = (  # numbers of jobs that are named here take the place of the profile's
    "--groups measure=measured measure_snapshot=measured --group-components measured=2 prompts=20 structural=100"
)


@pytest.fixture(scope="module")
def ran(slurm, fresh, tmp_path_factory):
    """A clone in which the targets were made on SLURM, elsewhere than in its own folder."""
    project = fresh.copy(tmp_path_factory.mktemp("ran") / "position-bias")
    project.snakemake(f"{' '.join(TARGETS)} {PROFILE} --directory elsewhere {TOGETHER}", **slurm.environment)
    return project


@pytest.fixture(scope="module")
def submissions(ran, slurm):
    """What that run submitted."""
    return slurm.submissions()


def gpus(job):
    """How many GPUs a job asked for."""
    found = re.search(r"gres:gpu:(\d+)", job.get("TresPerJob", ""))
    return int(found[1]) if found else 0


def test_every_submission_ended_well_in_its_partition(submissions):
    assert {job["JobState"] for job in submissions} == {"COMPLETED"}
    for job in submissions:
        assert (job["Partition"], gpus(job)) in {("cpu", 0), ("gpu", 1)}, job
    with_gpu = [job["Comment"].split("_wildcards_")[0] for job in submissions if gpus(job)]
    assert sorted(with_gpu) == ["rule_emergence_train", "rule_layernorm_train", GROUP, "rule_train"]


def test_small_jobs_together_ask_for_what_the_largest_needs(submissions):
    asked = {job["Comment"]: (job["MinMemoryNode"], gpus(job)) for job in submissions}
    assert asked["rule_prompts_prompts"] == ("2000M", 0)  # of three
    (of_structural,) = (comment for comment in asked if comment.startswith("rule_structural"))
    assert of_structural == "rule_structural_" + "_".join(
        f"structural_{name}" for name in ("draw_fig2", "draw_forces", "licences", "propositions")
    )
    assert asked[of_structural] == ("1000M", 0)


def test_jobs_at_the_same_time_see_different_gpus(submissions, slurm):
    seen = slurm.devices()
    for job in submissions:
        assert seen[job["JobId"]] in ({"0", "1"} if gpus(job) else {""}), job
    together = [
        (one, other)
        for one, other in itertools.combinations(filter(gpus, submissions), 2)
        if one["StartTime"] < other["EndTime"] and other["StartTime"] < one["EndTime"]
    ]
    assert together
    for one, other in together:
        assert seen[one["JobId"]] != seen[other["JobId"]]


def test_jobs_are_followed_without_sacct(ran, slurm):
    """Once it is asked which account to bill, to which no answer is fine, and never what became of a job."""
    asked = (slurm.folder / "sacct.asked").read_text().splitlines()
    assert all("Account" in question and "State" not in question for question in asked)


def test_a_cancelled_training_resumes_with_more_memory(slurm, fresh, tmp_path):
    project = fresh.copy(tmp_path / "position-bias")
    project.configure({"postnorm": {"set_complement": {"iterations": 600}}})
    before = len(slurm.submissions())
    run = subprocess.Popen(
        ["bash", "-c", f"exec snakemake results/postnorm/set-complement-16/tests.parquet {PROFILE}"],
        cwd=project.root,
        env={**os.environ, **slurm.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        checkpoints = project.root / "checkpoints/postnorm"
        until = time.monotonic() + 120
        while not list(checkpoints.glob("*/*/checkpoint.safetensors")) and time.monotonic() < until:
            time.sleep(0.1)
        slurm.ask("scancel", slurm.submissions()[before]["JobId"])
        printed, _ = run.communicate(timeout=300)
    finally:
        run.kill()
    assert run.returncode == 0, printed
    cancelled, resumed = slurm.submissions()[before:]
    assert (cancelled["JobState"], cancelled["MinMemoryNode"]) == ("CANCELLED", "2000M")
    assert (resumed["JobState"], resumed["MinMemoryNode"]) == ("COMPLETED", "4000M")
    assert "resumed after" in (project.root / "logs/postnorm/set-complement-16.log").read_text()


WITH_TIMES = (".snakemake_timestamp", "run.csv")


def made(folder):
    """Every file of results and figures by its path, but those that hold times."""
    return {
        path.relative_to(folder): path
        for top in ("figures", "results")
        for path in sorted((folder / top).rglob("*"))
        if path.is_file() and "benchmarks" not in path.parts and path.name not in WITH_TIMES
    }


def test_what_slurm_makes_has_the_bytes_of_a_local_run(ran, whole_graph):
    here, there = made(whole_graph.root), made(ran.root / "elsewhere")
    assert {ran.root / "elsewhere" / target for target in TARGETS} <= set(there.values())
    assert len(there) > 40
    assert [path for path in there if there[path].read_bytes() != here[path].read_bytes()] == []
