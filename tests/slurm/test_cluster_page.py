"""The commands of docs/cluster.md, typed in their order on a real SLURM, through a kill of Snakemake and its recovery.

In place of everything stand the prompts of a hub model on a hub text: two fetches, and a job.
"""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from position_bias.language_models import families
from position_card.texts import corpus, tokens

pytestmark = pytest.mark.all("the commands of docs/cluster.md on a real SLURM take a minute")
PAGE = (Path(__file__).parents[2] / "docs/cluster.md").read_text()
STEPS = PAGE.split("\n## Step by step\n")[1].split("\n## ")[0]
_, COPY, FETCH, FETCH_RELEASED, LIMITS, RUN, LISTED, _, RECOVER = re.findall(
    r"^```\n(.*?)^```", STEPS, re.MULTILINE | re.DOTALL
)
PROMPTS = "results/prompts/toy/mine/n16.safetensors"
VOCABULARY = 300


@pytest.fixture(scope="module")
def project(fresh, released_sample, tmp_path_factory):
    """A clone whose config/paper.yaml names a toy and a text on this disk, and whose released numbers are random."""
    root = tmp_path_factory.mktemp("page")
    project = fresh.copy(root / "position-bias")
    texts = [document.text[:400] for document in corpus.documents("language-reference")][:12]
    families.build(
        "bloom", {"layers": 1, "heads": 2, "hidden": 8, "initializer_range": 0.1}, VOCABULARY, 32, 0
    ).save_pretrained(root / "toy")
    tokens.train_tokenizer(texts, VOCABULARY).save(str(root / "toy/tokenizer.json"))
    (root / "mine").mkdir()
    (root / "mine/all.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    toy = {"source": str(root / "toy"), "family": "bloom", "positions": "own", "gpus": 1, "memory": 2, "minutes": 10}
    mine = {"source": str(root / "mine"), "subset": None, "split": "train", "column": "text", "documents": 12}
    paper = {
        "hub_models": {"toy": {**toy, "revision": None}},
        "hub_datasets": {"mine": {**mine, "revision": None}},
        "lengths": dict(
            zip(("heatmap", "standard", "long"), ({"tokens": n, "prompts": 4} for n in (10, 16, 24)), strict=True)
        ),
    }
    (project.root / "config/paper.yaml").write_text(yaml.safe_dump(paper))
    (project.root / "config/paper-available.yaml").write_text("checkpoint_every: {measure: 2}\n")
    released = {"released": {"source": str(released_sample.tables), "sha256": None}}
    (project.root / "config/published.yaml").write_text(yaml.safe_dump(released))
    return project


def test_the_page_holds_up_to_the_recovery_of_a_killed_run(project, slurm, tmp_path):
    paper = tmp_path / "paper"

    def typed(block, run_id="RUN_ID"):
        """A block as its reader fills it in."""
        wanted = block.replace("snakemake all ", f"snakemake {PROMPTS} ")
        return wanted.replace("/scratch/$USER", str(tmp_path)).replace("RUN_ID", run_id)

    def run(block, **filled):
        ended = project.run(f"set -e\n{typed(block, **filled)}", **slurm.environment, HOME=str(tmp_path))
        assert ended.returncode == 0, ended.stdout
        return ended.stdout

    assert "cpu* infinite" in run(re.search(r"`(sinfo [^`]+)`", PAGE)[1])
    run(COPY)
    run(FETCH)
    fetched = {path: path.stat().st_mtime_ns for path in (paper / "results").rglob("*.json")}
    assert {path.name for path in fetched} == {"toy.json", "mine.json"}
    run(FETCH_RELEASED)
    run(LIMITS.replace("bloom-176b", "toy"))
    plan, start, asked = RUN.splitlines()
    before = len(slurm.submissions())
    assert re.search(r"^prompts +1$", run(plan), re.MULTILINE)
    assert re.search(r"^ +1 mem_mb=\d+, runtime=\d+, slurm_partition=cpu", run(asked), re.MULTILINE)
    until = time.monotonic() + 120
    command = ["bash", "-c", f"exec {typed(start)}"]
    with subprocess.Popen(
        command, cwd=project.root, env={**os.environ, **slurm.environment, "HOME": str(tmp_path)}
    ) as killed:
        try:
            while [job["JobState"] for job in slurm.submissions()[before:]] != ["RUNNING"] and time.monotonic() < until:
                time.sleep(0.1)
        finally:
            killed.kill()
    look, cancel, left, unlock = RECOVER.splitlines()
    run_id = run(look).split()[-1]
    run(cancel, run_id=run_id)
    assert run(left, run_id=run_id).splitlines()[0] == LISTED.splitlines()[0]
    while len(run(left, run_id=run_id).splitlines()) > 1 and time.monotonic() < until:  # below its header
        time.sleep(0.5)
    run(unlock)
    run(start)
    assert [job["JobState"] for job in slurm.submissions()[before:]] == ["CANCELLED", "COMPLETED"]
    assert (paper / PROMPTS).is_file()
    assert {path: path.stat().st_mtime_ns for path in fetched} == fetched
