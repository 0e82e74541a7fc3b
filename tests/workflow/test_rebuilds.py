"""What a change builds again, and what a mistake of the command line says: plans, and a few jobs in the small graph."""

import json
import re

import pytest
import yaml
from PIL import Image

from position_bias.emergence.runs import ALL_SINKS, OF_MAPS
from tests.graphs import LENGTHS, SMALL_JOBS, WHOLE_JOBS, drawn, draws, only

MEASURED = "results/measure/bloom/seed0/step12/standard-library/n32.safetensors"
MODELS, DATASETS = WHOLE_JOBS["train"], WHOLE_JOBS["corpus"]
DRAWN = drawn(small=True)
OF_PROFILES = ("structural_draw_fig1", "structural_draw_fig3", "structural_draw_training")
OF_THEORY = ("structural_propositions", "structural_draw_forces", "structural_draw_dichotomy")
OF_STATISTICS = (
    *("structural_table2", "structural_table3", "structural_table4", "structural_spearman"),
    *("structural_printed_table2", "structural_printed_table3", "structural_printed_table4"),
)
OF_CURVE = ("structural_curve", "structural_draw_curve", "structural_draw_three_measures")
OF_RECALL = ("structural_recall", "structural_draw_recall", *OF_CURVE)
OF_CHECKS = tuple(
    f"structural_draw_{name}" for name in ("decoders_ends", "decoders_rollouts", "other_models", "distances")
)
AFTER_ROLLOUTS = (*OF_PROFILES, *OF_STATISTICS, "structural_checks", *OF_CHECKS, "structural_pretrained", *OF_RECALL)
OF_INITIALIZATION = ("structural_initialization", "structural_draw_initialization")
CHECKPOINTED = ("training", "measure", "emergence", "layernorm", "postnorm")
WITH_GPU = [rule for rule in WHOLE_JOBS if re.search(r"(^|_)train(_|$)|^measure", rule)]
ROLLED_OUT = {"rollout": SMALL_JOBS["rollout"], **only(*AFTER_ROLLOUTS, "structural_shift")}
RESAMPLED = ROLLED_OUT | only("structural_sink")
MEASURED_AGAIN = ROLLED_OUT | {
    **{name: SMALL_JOBS[name] for name in ("measure", "measure_snapshot", "measure_pretrained", "measure_copy")},
    **only("measure_initialization", *OF_INITIALIZATION),
    **only(
        "structural_table5",
        "structural_printed_table5",
        "structural_monotonicity",
        "structural_draw_fig4",
        "structural_draw_fig5",
    ),
    **only("layernorm_checks", "layernorm_draw_pretrained"),
}
ONE_MORE_PLAN = pytest.mark.all("one more plan, of a kind that others are of")
EVERY_FIGURE = only(*(f"{paper}_draw_{name}" for paper, names in DRAWN.items() for name in names))


def test_a_clone_builds_everything(fresh):
    assert fresh.planned() == WHOLE_JOBS


def test_results_go_where_directory_says(fresh, tmp_path):
    fresh.snakemake(f"results/corpus/language-reference.json --cores 1 --directory {tmp_path}")
    assert (tmp_path / "results/corpus/language-reference/train.parquet").exists()
    assert not (fresh.root / "results/corpus").exists()


def test_a_commit_makes_nothing_out_of_date_and_the_next_record_names_it(mine):
    author = "-c user.name=A -c user.email=a@example.org"
    mine.run(f"git init && git add --all && git {author} commit --message one")
    commit = mine.run("git rev-parse HEAD").stdout.strip()
    assert "Nothing to be done" in mine.snakemake("all -n --cores 1")
    (mine.root / "figures/emergence/fig1.pdf").unlink()  # the figure that is made of nothing
    made = mine.snakemake("all --cores 1")
    assert re.findall(r"Finished jobid: \d+ \(Rule: (\w+)\)", made) == ["emergence_draw_fig1", "provenance", "all"]
    assert json.loads((mine.root / "results/provenance.json").read_text())["code"] == {"commit": commit, "dirty": False}


def test_nothing_is_done_a_second_time_nor_for_touched_files_nor_for_numbers_that_are_given_as_they_are(mine):
    """Snakemake merges what is given with config.yaml in such a way that it comes first."""
    assert "Nothing to be done" in mine.snakemake("--cores 8 --resources gpu=2 all")  # as people type it
    for name in ("rollout/last_row", "measures/measure", "drawing/style"):
        (mine.root / f"position_card/{name}.py").touch()
    assert mine.planned() == {}
    config = yaml.safe_load((mine.root / "config.yaml").read_text())
    task, steps = config["emergence"]["task"], config["training"]["steps"]
    given = {"emergence": {"task": {"width": task["width"]}}, "training": {"steps": steps}}
    (mine.root / "given.yaml").write_text(yaml.safe_dump(given))
    typed = f"rollout='{{bootstrap: {config['rollout']['bootstrap']}}}'"
    assert mine.planned(f"all --configfile given.yaml --config {typed}") == {}


@pytest.mark.parametrize(
    ("figure", "planned"),
    [
        (
            "structural/fig4",
            {"corpus": DATASETS, "prompts": DATASETS * LENGTHS, "train": MODELS, "measure": MODELS * DATASETS}
            | only("tokenizer", "structural_draw_fig4"),
        ),
        (
            "structural/fig2",
            {"corpus": 2, "prompts": 3} | only("tokenizer", "train", "measure", "rollout", "structural_draw_fig2"),
        ),
        ("emergence/fig1", only("emergence_draw_fig1")),
        ("emergence/fig8b", only("emergence_train", "emergence_attention", "emergence_draw_fig8b")),
        ("layernorm/emergence", {"emergence_train": 3, "layernorm_draw_emergence": 1}),
        *(
            pytest.param(figure, planned, marks=ONE_MORE_PLAN)
            for figure, planned in (
                ("emergence/fig3", only("emergence_train", "emergence_draw_fig3")),
                ("emergence/fig4", {"emergence_train": 2, "emergence_draw_fig4": 1}),
                ("postnorm/set_complement", {"postnorm_train": 2, "postnorm_draw_set_complement": 1}),
                ("layernorm/trained", {"layernorm_train": 4, "layernorm_draw_trained": 1}),
            )
        ),
    ],
)
def test_one_figure_builds_just_what_it_needs(fresh, figure, planned):
    assert fresh.planned(f"figures/{figure}.pdf") == planned


MEASURE, FIGURES, STYLE, SINKS, LAST_ROW = (
    f"position_{name}.py"
    for name in (
        "card/measures/measure",
        "bias/structural/figures",
        "card/drawing/style",
        "bias/emergence/sinks",
        "card/rollout/last_row",
    )
)


@pytest.mark.parametrize(
    ("edits", "planned"),
    [
        (
            [
                (MEASURE, '"""Sum the weights', '"""In other words: sum the weights'),
                (MEASURE, "# lambda and the fitted kernel", "# another comment on lambda and the fitted kernel"),
                (MEASURE, "but recency needs more than", "while recency needs more than"),
                (MEASURE, "\n\ndef measure_decoder(", "\n\ndef unused():\n    pass\n\n\ndef measure_decoder("),
            ],
            {},
        ),
        ([(MEASURE, "[0].sum(0)", "[0].mean(0)")], MEASURED_AGAIN),
        ([(FIGURES, "for mixing in mixings) / 2)", "for mixing in mixings) / 3)")], only("structural_draw_fig4")),
        pytest.param(
            [(FIGURES, "(BOLD, THIN)) -> None:", "(BOLD, BOLD)) -> None:")],
            only("structural_draw_fig1", "structural_draw_fig3"),
            marks=ONE_MORE_PLAN,
        ),
        ([(STYLE, '"lines.linewidth": 1.2', '"lines.linewidth": 1.3')], EVERY_FIGURE),
        pytest.param(
            [(SINKS, "mask[queries].sum(axis=0)", "mask[queries].sum(axis=1)")],
            draws("emergence", set(DRAWN["emergence"]) & {*OF_MAPS, *ALL_SINKS})
            | only("emergence_checks")
            | {"emergence_attention": SMALL_JOBS["emergence_attention"]},
            marks=ONE_MORE_PLAN,
        ),
        (
            [(LAST_ROW, "row[-1] = 1.0", "row[-1] = 2.0")],
            {"rollout": SMALL_JOBS["rollout"], **only(*AFTER_ROLLOUTS, *OF_THEORY, *OF_INITIALIZATION)},
        ),
    ],
)
def test_an_edit_of_the_library_makes_again_what_runs_it_and_nothing_else(mine, edits, planned):
    for edit in edits:
        mine.edit(*edit)
    assert mine.planned() == planned


@pytest.mark.all("what Snakemake itself offers is planned four times")
def test_an_edit_is_marked_as_harmless_or_not_looked_at(mine):
    mine.edit(FIGURES, "for mixing in mixings) / 2)", "for mixing in mixings) / 3)")
    assert "Params have changed" in mine.snakemake("figures/structural/fig4.pdf -n --cores 1")
    assert mine.planned("all --rerun-triggers mtime") == {}
    mine.snakemake("all --touch --cores 1")
    assert mine.planned() == {}


@pytest.mark.parametrize(
    ("changes", "planned"),
    [
        pytest.param({"rollout": {"bootstrap": 60}}, RESAMPLED, marks=ONE_MORE_PLAN),
        (
            {"rollout": {"bootstrap": 60}, "checkpoint_every": dict.fromkeys(CHECKPOINTED, 5)},
            RESAMPLED,
        ),
        (
            {"structural": {"recall": {"contexts": 5}}},
            only("measure_recall", *OF_RECALL, "structural_checks", *OF_CHECKS),
        ),
        (
            {"emergence": {"networks": {"ends": ["none/sin", "none/rope", "causal/sin", "causal/rope"]}}},
            {"emergence_train": 2}  # gaussian and fixed
            | draws("emergence", ("fig3", "fig11a"))
            | only("emergence_gaps", "emergence_checks"),
        ),
        pytest.param(
            {"layernorm": {"trained": {"learning_rate": {"pre-rms": 0.001}}}},
            only("layernorm_train", "layernorm_draw_trained", "layernorm_checks"),
            marks=ONE_MORE_PLAN,
        ),
    ],
)
def test_a_changed_number_makes_again_what_depends_on_it_and_nothing_else(mine, changes, planned):
    mine.configure(changes)
    assert mine.planned() == planned


def test_what_is_new_or_longer_leaves_alone_what_is_finished(mine):
    another_language = {"languages": {"lengths": {"tomita-3": 9}}}
    mine.configure({"emergence": {"depths": {"gaussian": {"plain": [2, 3]}}}, "postnorm": another_language})
    planned = mine.planned()
    assert planned["emergence_train"] == planned["emergence_draw_fig4"] == 1
    assert not planned.keys() & {"emergence_draw_fig5", "emergence_draw_fig3"}
    assert planned["postnorm_train"] == 1
    assert not planned.keys() & {"postnorm_train_widths", "postnorm_train_averages", "postnorm_draw_set_complement"}
    later = {"testing": {"settled": 0.5, "last_kept": 5}, "training": {"iterations": {"ends": 30}}}
    mine.configure({"emergence": later, "lengths": {"long": {"prompts": 6}}})
    planned = mine.planned()
    assert planned["emergence_train"] == 1 + 2  # those biased to both ends, of either vocabulary
    assert planned["emergence_draw_long_training"] == planned["emergence_gaps"] == 1
    assert "train" not in planned
    assert planned["prompts"] == 1


@pytest.mark.all("a figure is drawn once more")
def test_another_width_draws_the_figures_again_and_nothing_else(mine):
    mine.configure({"figures": {"width": 3.3, "transparent": True}})
    assert mine.planned() == EVERY_FIGURE
    mine.snakemake("figures/emergence/fig1.png --cores 1")
    with Image.open(mine.root / "figures/emergence/fig1.png") as drawn:
        assert 3.2 < drawn.width / 240 < 3.5
        assert drawn.getpixel((0, 0))[3] == 0


def test_an_edited_prediction_is_judged_and_simulates_nothing(mine):
    predictions = mine.root / "published/predictions.csv"
    predictions.write_text(predictions.read_text().replace(",0.001,Depth,", ",0.002,Depth,"))
    planned = mine.planned().keys()
    assert "layernorm_checks" in planned
    assert not planned & {"layernorm_theory", "layernorm_simulate", "layernorm_random_weights"}


@pytest.mark.all("five plans")
def test_a_study_may_leave_networks_out_and_nothing_makes_the_figures_that_show_them(fresh):
    without = "--config emergence='{networks: {plain: [causal/rope], ends: []}}'"
    assert fresh.planned(f"figures/emergence/fig4.pdf {without}") == {
        "emergence_train": 2,
        "emergence_draw_fig4": 1,
    }
    for figure in ("fig7", "fig8a", "fig3", "long_training"):
        ended = fresh.dry_run(f"figures/emergence/{figure}.pdf -n {without}")
        assert ended.returncode != 0
        assert f"figures/emergence/{figure}.pdf" in ended.stdout


def test_an_edited_statement_makes_the_scorecard_again_and_nothing_else(mine):
    path = mine.root / "published/claims.csv"
    path.write_text(path.read_text().replace("Content preserves the U", "Content keeps the U"))
    printed = mine.snakemake("all -n --cores 1")
    assert {"judge_claims", "draw_scorecard"} <= {line.split()[0] for line in printed.splitlines() if line.strip()}
    assert mine.planned() == {}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("all --config device=tpu", "config: device = 'tpu' is not known; use one of auto, cpu, cuda"),
        ("all --config rollout='{level: .nan}'", "config: rollout.level = '.nan' is of the wrong type"),
        (
            "all --config postnorm='{languages: {lengths: {7: 9}}}'",
            "config: postnorm.languages.lengths has the name",
        ),
        ("all --config training=", "config: training = "),
        ("evidence", "config: evidence names no group"),
        ("all_published", "config: released.source = None names no source"),
        ("figures/structural/published_fig1.pdf", "config: released.source = None names no source"),
    ],
)
def test_what_cannot_be_run_ends_in_one_line_before_any_job(fresh, typed, said):
    ended = fresh.dry_run(f"{typed} -n --cores 1")
    assert ended.returncode == 1
    assert "Traceback" not in ended.stdout
    assert ended.stdout.splitlines()[-1].startswith(f"error: {said}")


def test_a_key_that_an_overlay_has_twice_ends_in_one_line(fresh, tmp_path):
    (tmp_path / "twice.yaml").write_text("seed: 1\nseed: 2\n")
    ended = fresh.dry_run(f"all -n --cores 1 --configfile {tmp_path}/twice.yaml")
    assert ended.returncode == 1
    said = f"error: config: {tmp_path}/twice.yaml has the key 'seed' twice, again in line 2; remove one"
    assert ended.stdout.splitlines()[-1] == said


def test_a_damaged_table_of_evidence_ends_in_one_line(fresh, tmp_path):
    project = fresh.copy(tmp_path / "position-bias")
    table = project.root / "evidence/emergence/ends-rope/runs.csv"
    table.unlink()
    table.write_bytes(b"\xff")
    ended = project.dry_run("all -n --cores 1")
    assert ended.returncode == 1
    assert "Traceback" not in ended.stdout
    said = "error: evidence/emergence/ends-rope/runs.csv is not a table of runs ('utf-8' codec can't decode byte 0xff"
    assert ended.stdout.splitlines()[-1].startswith(said)


@pytest.mark.all("the scorecard is judged twice")
def test_the_scorecard_ends_with_its_counts_and_its_figure_does_not(mine):
    counts = (mine.root / "results/tables/scorecard.txt").read_text()
    (mine.root / "results/tables/scorecard.csv").unlink()
    (mine.root / "figures/scorecard.pdf").unlink()
    printed = mine.snakemake("scorecard --cores 1")
    assert counts in printed
    assert not re.search(r"\d of \d+ steps", printed.split(counts)[1])  # nothing is built after them
    (mine.root / "figures/scorecard.pdf").unlink()
    assert counts.splitlines()[0] not in mine.snakemake("figures/scorecard.pdf --cores 1")


@pytest.mark.all("four plans")
def test_a_model_of_figure_1_need_not_be_measured(fresh):
    for measured, shown, missing in (("falcon", "fig2", "fig1"), ("bloom", "fig1", "fig2")):
        fewer = f"--config measure='{{models: [{measured}]}}'"
        planned = fresh.planned(f"structural {fewer}")
        assert f"structural_draw_{shown}" in planned
        assert f"structural_draw_{missing}" not in planned
        ended = fresh.dry_run(f"figures/structural/{missing}.pdf -n --cores 1 {fewer}")
        assert ended.returncode != 0
        assert f"figures/structural/{missing}.pdf" in ended.stdout
        assert "Traceback" not in ended.stdout


@pytest.mark.all("a figure is drawn once more")
def test_a_figure_drawn_again_has_the_same_bytes(mine):
    """In processes of its own: forks of the small graph leave parts of fonts out (`tests/figure_formats.py`)."""
    again = "figures/structural/fig1.pdf --cores 1 --forcerun structural_draw_fig1"
    paths = [mine.root / f"figures/structural/fig1.{suffix}" for suffix in ("pdf", "svg", "png")]
    of_forks = [path.read_bytes() for path in paths]
    measured = (mine.root / MEASURED).stat().st_mtime_ns
    mine.snakemake(again)
    before = [path.read_bytes() for path in paths]
    assert before[1:] == of_forks[1:]
    mine.snakemake(again)
    assert [path.read_bytes() for path in paths] == before
    assert (mine.root / MEASURED).stat().st_mtime_ns == measured


def test_a_failed_run_shows_the_log_of_its_job_and_says_what_to_type(fresh, tmp_path):
    project = fresh.copy(tmp_path / "position-bias")
    project.append("scripts/draw.py", "\n    raise RuntimeError('broken')\n")
    ended = project.run("snakemake figures/emergence/fig1.pdf --cores 1")
    assert ended.returncode == 1
    shown = ended.stdout.index("\nLogfile logs/figures/emergence/fig1.log:\n")
    cause = ended.stdout.index("\nRuntimeError: broken\n", shown)
    assert cause < ended.stdout.index("\nA job failed; its log is shown above")
    assert ended.stdout.count("type the same command again") == 1


def test_the_gpu_tag_counts_only_where_a_gpu_is_used(fresh):
    measuring = "figures/structural/fig4.pdf -n --cores 1"
    assert "gpu=1" in fresh.snakemake(measuring, CUDA_VISIBLE_DEVICES="0,1")
    assert "gpu=1" not in fresh.snakemake(measuring, CUDA_VISIBLE_DEVICES="")
    assert fresh.snakemake("all -n --cores 1", CUDA_VISIBLE_DEVICES="0,1").count("gpu=1") == sum(
        WHOLE_JOBS[rule] for rule in WITH_GPU
    )
    assert "gpu=1" not in fresh.snakemake(f"{measuring} --config device=cpu", CUDA_VISIBLE_DEVICES="0,1")


@pytest.mark.all("two plans and a job")
def test_the_script_of_a_job_runs_in_one_process_for_a_debugger(mine):
    """On the inputs that are there, and with the bytes that Snakemake's own process of it wrote."""
    table = mine.root / "results/tables/emergence/gaps.csv"
    made = table.read_bytes()
    table.unlink()
    assert mine.run("python run_job.py results/tables/emergence/gaps.csv").returncode == 0
    assert table.read_bytes() == made
    ended = mine.run("python run_job.py results/tables/none.csv")
    assert ended.returncode != 0
    assert "results/tables/none.csv" in ended.stdout
