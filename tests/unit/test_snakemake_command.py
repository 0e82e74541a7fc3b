import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from snakemake import api, cli
from snakemake.settings.enums import Quietness, RerunTrigger

import snakemake_command
from snakemake_command import CHOICES, targets_first

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("typed", "passed"),
    [
        ("--cores 8 --resources gpu=2 all", "all --cores 8 --resources gpu=2"),
        ("--resources gpu=2 mem_mb=100 all figures/a.pdf -n", "all figures/a.pdf --resources gpu=2 mem_mb=100 -n"),
        ("--res gpu=2 all", "all --res gpu=2"),
        ("--config model=bloom card", "card --config model=bloom"),
        ("--set-resources train:gpu=1 all -n", "all --set-resources train:gpu=1 -n"),
        ("--default-resources qos=long all", "all --default-resources qos=long"),
        ("--cores 2 -C model=a,b text=./t.txt card -n", "card --cores 2 -C model=a,b text=./t.txt -n"),
        (
            "-n one --resources gpu=2 two --resources mem_mb=1 three",
            "two three -n one --resources gpu=2 --resources mem_mb=1",
        ),
        ("-n --quiet rules figures/a.pdf", "figures/a.pdf -n --quiet rules"),
        ("-n --quiet rules reason all", "all -n --quiet rules reason"),
        ("-q a.pdf -n b.pdf", "a.pdf -q -n b.pdf"),
        ("--rerun-triggers mtime code a.pdf -n", "a.pdf --rerun-triggers mtime code -n"),
    ],
)
def test_targets_among_resources_move_to_the_front(typed, passed):
    assert targets_first(typed.split()) == passed.split()


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "all --cores 8 --resources gpu=2",
        "--resources gpu=2 -- all",
        "--resources=gpu=2 all",
        "--cores 8 --config seed=1 -n all",
        "--set-threads a=1 --resources gpu=2 --until train",
        "--lint",
        "--quiet all",
        "a.pdf -n --quiet rules progress",
    ],
)
def test_every_other_call_is_untouched(typed):
    assert targets_first(typed.split()) == typed.split()


def test_the_words_of_a_list_are_those_of_snakemake():
    assert set(CHOICES["--quiet"]) == set(CHOICES["-q"]) == set(Quietness.choices())
    assert set(CHOICES["--rerun-triggers"]) == set(RerunTrigger.choices())


@pytest.fixture
def called(monkeypatch):
    """Type a command line; returns what Snakemake is called with."""
    for module, changed in ((cli, "get_argument_parser"), (cli, "parse_args"), (api, "DAGApi")):
        monkeypatch.setattr(module, changed, getattr(module, changed))  # put back when the test ends

    def calls(*typed):
        found = []
        monkeypatch.setattr(cli, "main", found.append)
        monkeypatch.setattr(sys, "argv", ["x", *typed])
        snakemake_command.main()
        return found

    return calls


def test_snakemake_is_called_with_what_was_typed(called):
    assert called("--cores", "1", "--resources", "gpu=1", "all") == [["all", "--cores", "1", "--resources", "gpu=1"]]


def test_a_second_configfile_ends_the_command(called):
    called()
    with pytest.raises(SystemExit, match="--configfile stands twice"):
        cli.parse_args(["all", "--configfile", "config/paper.yaml", "--configfile=config/first-rung.yaml"])
    cli.parse_args(["all", "--configfile", "config/paper.yaml", "config/first-rung.yaml"])


@pytest.mark.parametrize(
    "typed", [["--config", "model=./a", "--config", "text=./b"], ["-C", "seed=1", "--config", "seed=2"]]
)
def test_a_second_config_ends_the_command(called, typed):
    called()
    with pytest.raises(SystemExit, match="--config stands twice, and the last one alone would count; put everything"):
        cli.parse_args(["card", *typed])
    cli.parse_args(["card", "--config", "model=./a", "text=./b", "--set-resources", "card_measure:gpu=1"])


def test_a_key_that_stands_twice_ends_the_command(called):
    called()
    with pytest.raises(
        SystemExit, match=r"^error: model stands twice after --config, and the last one alone would count"
    ):
        cli.parse_args(["card", "--config", "model=./a", "text=./b", "model=./c"])


@pytest.mark.parametrize(
    ("typed", "seen"),
    [
        ("model=../a,./b,bloom", "model={up}/a,{here}/b,bloom"),
        ("text=./t.txt", "text={here}/t.txt"),
        ("model=/a,~/b,Qwen/Qwen3-0.6B", "model=/a,~/b,Qwen/Qwen3-0.6B"),
        ("seed=1", "seed=1"),
    ],
)
def test_paths_are_seen_from_the_shell_where_the_results_stand_elsewhere(called, monkeypatch, tmp_path, typed, seen):
    monkeypatch.chdir(tmp_path)
    called()
    seen = seen.format(here=tmp_path, up=tmp_path.parent)
    snakefile = ["--snakefile", str(ROOT / "Snakefile"), "--cores", "1"]
    for elsewhere, expected in ((["--directory", "d"], seen), ([], typed)):
        found = cli.parse_args(["card", *snakefile, *elsewhere, "--config", typed])[1]
        assert found.config == [expected]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("card:\n  lengths: [64\n", "line 3, is no YAML (expected ',' or ']', but got"),
        ("seed: 1\ncard:\n\tlengths: [64]\n", "line 3, is no YAML (found character "),
        ("seed: \x00", "is no YAML (unacceptable character #x0000"),
        ("- seed\n", "has no keys at its top; write it as key: value"),
        ("seed", "has no keys at its top"),
    ],
)
def test_a_file_that_is_no_yaml_ends_the_command_with_its_name_and_line(called, tmp_path, text, said):
    called()
    slip = tmp_path / "slip.yaml"
    slip.write_text(text)
    with pytest.raises(SystemExit) as ended:
        cli.parse_args(["all", "--configfile", "config/paper.yaml", str(slip)])
    assert str(ended.value).startswith(f"error: {slip}")
    assert said in str(ended.value)


def test_no_rate_is_kept_to_but_one_that_is_typed(called):
    called()
    assert cli.parse_args(["--cores", "1"])[1].max_jobs_per_timespan is None
    typed = cli.parse_args(["--max-jobs-per-timespan", "5/2s"])[1].max_jobs_per_timespan
    assert (typed.max_jobs, typed.timespan) == (5, 2)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("all --configfile config/paper.yaml config/papr.yaml", "config/papr.yaml does not exist"),
        ("--configfile config/paper.yaml all", "all does not exist; .* what is to be made stands before --configfile"),
        ("--workflow-profile profiles/slrm", "there is no profile profiles/slrm; correct its name"),
    ],
)
def test_what_does_not_exist_ends_in_one_line(called, monkeypatch, typed, said):
    monkeypatch.chdir(ROOT)
    called()
    with pytest.raises(SystemExit, match=f"^error: {said}"):
        cli.parse_args(["--cores", "1", *typed.split()])


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        (["--config", "model=bloom", "--card={prompts: 8}"], "card"),  # plain argparse takes this for a word
        (["--config", "model=bloom", "--text=./a.txt"], "text"),
        (["--model", "bloom"], "model"),
    ],
)
def test_a_key_of_the_configuration_is_no_option(called, monkeypatch, typed, key):
    monkeypatch.chdir(ROOT)
    called()
    said = f"^error: --{key} is no option; {key} is a key of the configuration: --config {key}=... sets it$"
    with pytest.raises(SystemExit, match=said):
        cli.parse_args(["card", "--cores", "1", *typed])


def test_no_option_of_snakemake_is_a_key_of_the_configuration():
    keys = {f"--{key}" for key in yaml.safe_load((ROOT / "config.yaml").read_text())}
    assert not keys & set(cli.get_argument_parser()._option_string_actions)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("rollout.bootstrap=200", "rollout='{bootstrap: 200}'"), ("a.b.c=[1]", "a='{b: {c: [1]}}'")],
)
@pytest.mark.parametrize("option", ["--config", "-C"])
def test_a_key_with_its_section_is_shown_as_it_is_typed(called, typed, meant, option):
    called()
    with pytest.raises(SystemExit) as ended:
        cli.parse_args(["all", option, "seed=1", typed])
    key = typed.partition("=")[0]
    assert ended.value.code == f"error: {key} stands in a section; type it as --config {meant}"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("--dryrunn", "unrecognized arguments: --dryrunn; did you mean --dry-run?"),
        ("--directroy x", "unrecognized arguments: --directroy x; did you mean --directory?"),
        (
            "--bootstrap 200",
            "unrecognized arguments: --bootstrap 200; snakemake --help lists the options, and keys of the "
            "configuration stand after --config",
        ),
    ],
)
def test_an_option_that_there_is_not_ends_in_one_line(called, capsys, typed, said):
    called()
    with pytest.raises(SystemExit):
        cli.parse_args(["all", *typed.split()])
    assert capsys.readouterr().err == f"error: {said}\n"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("strutural", "did you mean 'structural'?"),
        ("figures/emergence/fig6.pdf", "did you mean 'figures/emergence/fig6c.pdf'?"),
        ("results/models/blom/seed0/step12", "did you mean 'results/models/bloom/seed0/step12'?"),
        ("README.md", "docs/map.md lists every figure and table, by its path"),
    ],
)
def test_a_target_that_nothing_makes_ends_in_one_line(fresh, target, said):
    ended = fresh.dry_run(f"-n {target}")
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[-1] == f"error: nothing makes {target!r}; {said}"


def test_a_folder_is_answered_with_a_file_in_it(fresh):
    ended = fresh.dry_run("-n figures/structural/")
    said = "error: figures/structural/ is a folder; name a file in it, such as figures/structural/"
    assert ended.stdout.splitlines()[-1].startswith(said)


def test_a_file_that_later_ones_undo_ends_the_command(called, tmp_path):
    called()
    paper, available = str(ROOT / "config/paper.yaml"), str(ROOT / "config/paper-available.yaml")
    cli.parse_args(["all", "--configfile", paper, available])
    with pytest.raises(SystemExit) as ended:
        cli.parse_args(["all", "--configfile", available, paper])
    said = "changes nothing, because the files after it set the same keys; name it after them"
    assert ended.value.code == f"error: {available} {said}"
    first_rung = str(ROOT / "config/first-rung.yaml")  # which also describes a model, of no use by itself
    cli.parse_args(["all", "--configfile", paper, first_rung])
    with pytest.raises(SystemExit, match=r"first-rung\.yaml changes nothing"):
        cli.parse_args(["all", "--configfile", first_rung, paper])
    hub = tmp_path / "hub.yaml"
    hub.write_text("hub_models: {mine: {source: a/b}}\n")
    cli.parse_args(["all", "--configfile", str(hub), paper])


def test_a_profile_of_the_project_stands_after_workflow_profile(called, monkeypatch):
    monkeypatch.chdir(ROOT)
    called()
    said = "profiles/default would overrule profiles/slurm after --profile; type --workflow-profile profiles/slurm"
    with pytest.raises(SystemExit, match=f"^error: {said}$"):
        cli.parse_args(["all", "--profile", "profiles/slurm"])


@pytest.mark.parametrize("profile", ["profiles/slurm", "slurm", "none", str(ROOT / "profiles/slurm/config.yaml")])
@pytest.mark.parametrize("folder", [".", "docs"])
def test_what_exists_is_taken_as_snakemake_takes_it(called, monkeypatch, profile, folder):
    """Seen from another folder, a profile stands beside the Snakefile that is named."""
    monkeypatch.chdir(ROOT / folder)
    called()
    profile = profile.removeprefix("profiles/") if folder != "." else profile
    typed = ["--snakefile", str(ROOT / "Snakefile"), "--cores", "1", "--workflow-profile", profile]
    found = cli.parse_args([*typed, "--configfile", str(ROOT / "config/test.yaml")])[1]
    assert (found.workflow_profile, found.configfile) == (profile, [ROOT / "config/test.yaml"])


@pytest.mark.parametrize("pairs", [("--resources", "gpu=2"), ("--config", "seed=1")])
def test_plain_snakemake_still_needs_it(pairs):
    """Once this fails, Snakemake takes the users' line itself: drop the command."""
    plain = [sys.executable, "-m", "snakemake", "-n", "--cores", "8", *pairs, "all"]
    assert subprocess.run(plain, capture_output=True, check=False).returncode != 0


def test_plain_snakemake_keeps_to_a_rate():
    """Once this fails, drop what the command does about it."""
    assert cli.parse_args(["--cores", "1"])[1].max_jobs_per_timespan.timespan == 1
