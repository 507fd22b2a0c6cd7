"""`fluxforge discover`: recipes, run folders, interruptions."""

import json
import shutil
import signal
import time
from pathlib import Path

import pytest
from cli_runs import Cli, only_line, start

from fluxforge import recipe
from fluxforge.cli import main
from fluxforge.cli._arguments import RECIPES
from fluxforge.cli._discovery import explain_failure, show_result
from fluxforge.pipeline._run import Run
from fluxforge.run.result import Discovery
from study_documents import read_partial

TINY = """
name = "tiny"
seeds = 2
[arms]
sparse = 1e-3
dense = 0.0
[data]
kind = "two-cells"
graphs = 10
[network]
features = "simplified"
layers = 1
mlp = "relu"
depth = 2
width = 4
update = "direct"
[loss.supervised]
[training]
steps = {steps}
batch = 4
chunk = 50
checkpoint_every = 100
[evaluation]
meshes = 2
cells = 30
engine = "builtin"
rollout = 5
"""


SET = ("--set", "training.steps=150", "--set", "network.aggregate=mean", "--set", "arms.dense=1e-9")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that has ended, and beside it the recipe it followed."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.toml").write_text(TINY.format(steps=100))
    assert main(["discover", str(folder / "tiny.toml"), "-o", str(folder / "run"), *SET]) == 0
    return folder / "run"


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


REFUSAL = "no formula for 'z1' is within 0.1 of the network: the best has an error of 0.17; train longer"
ROWS = [{"complexity": k, "error": 1 / k, "formula": f"0.02094163506671234*A + {k}.5*T_P"} for k in range(1, 14)]
REFUSED = {
    "recipe": "first-order",
    "update": "residual",
    "member": 1,
    "skipped": [0, 0],
    "verdict": "refused",
    "as_expected": False,
    "reasons": [REFUSAL],
    "fronts": {"z1": {"kind": "message", "rows": ROWS}, "T_new": {"kind": "update", "rows": ROWS[:12]}},
}


def test_a_refused_run_shows_its_best_candidates_in_few_digits_and_its_reason_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tmp_path, recipe.load("first-order"), read_partial(REFUSED, Discovery))
    show_result(run, tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert "distilled: network 2 of 2, the one of least loss" in lines
    (head,) = (k for k, line in enumerate(lines) if line.startswith("candidate of the"))
    assert lines[head].split()[3:] == ["complexity", "error", "formula"]
    shown = lines[head + 1 : head + 11]
    assert [line.split()[:3] for line in shown[:5]] == [["message", "z1", str(k)] for k in range(9, 14)]
    assert [line.split()[:3] for line in shown[5:]] == [["update", "f", str(k)] for k in range(8, 13)]
    assert shown[4].split()[3:] == ["0.077", "0.0209416*A", "+", "13.5*T_P"]
    assert lines[head + 11 : head + 13] == ["… and 15 more in front.csv", "the update learns f = (T_new - T)*V/dt"]
    # The reason is printed as the error.
    assert not any("no formula for" in line for line in lines)
    assert explain_failure(run) == f"no formula was accepted: {REFUSAL}"


def test_the_names_a_shell_completes_are_the_shipped_recipes() -> None:
    assert set(RECIPES) == set(recipe.list_recipes())


def test_a_run_writes_its_results_and_prints_the_same_when_resumed(cli: Cli, run: Path) -> None:
    assert {path.name for path in run.iterdir()} >= {
        "run.json", "metrics.jsonl", "checkpoints", "generalisation.json", "generalisation.png", "generalisation.svg",
    }  # fmt: skip
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [50, 100, 150]
    assert all(len(line["supervised"]) == 4 for line in lines)
    told = cli("discover", "--resume", run, "--json")
    assert told.err == ""
    assert told.code == 0
    for arm in ("sparse", "dense"):
        for name in ("train_mae", "ood_mse", "rollout_mse", "nonzeros"):
            assert len(told.json[arm][name]) == 2
    left = json.loads((run / "generalisation.json").read_text())
    assert all(told.json[name] == left[name] for name in ("sparse", "dense", "summary", "extrapolation"))


def test_a_folder_that_holds_a_run_is_not_begun_again(cli: Cli, run: Path, finished: Path) -> None:
    before = (run / "metrics.jsonl").read_bytes()
    told = cli("discover", finished.parent / "tiny.toml", "-o", run)
    assert told.code == 2
    assert "--resume" in only_line(told.err)
    assert (run / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("trainin = 3\n", "unknown field 'trainin'"),
        ("[training]\nsteps = 0\n", "training.steps"),
        ("[training]\nsteps = 'many'\n", "training.steps"),
        ("[loss.residual]\ntheta = 1.5\n", "loss.residual.theta"),
        ("[network]\nhops = 2\n[data]\nkind = 'two-cells'\n[loss.supervised]\n", "network.hops"),
        ("[data]\nkind = 'meshes'\nfiles = []\n[loss.supervised]\n", "data.files"),
        ("[data]\nkind = 'pairs'\n", "loss"),
    ],
)
def test_a_bad_recipe_is_one_line_and_writes_nothing(cli: Cli, tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(f"name = 'bad'\n{text}")
    told = cli("discover", path, "-o", tmp_path / "run")
    assert told.code == 2
    assert named in only_line(told.err)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("nonesuch",), "nonesuch"),
        (("--resume", "nowhere"), "nowhere"),
        (("first-order", "--resume", "x"), "--resume"),
        (("--theta", "2"), "theta"),
        (("first-order", "--engine", "magic"), "search.engine"),
        (("first-order", "--diffusivity", "-1"), "diffusivity"),
        (("--set", "training.step=5"), "unknown field 'training.step' (did you mean 'training.steps'?)"),
        (("--set", "stepz=5"), "unknown field 'stepz'"),
        (("--set", "training.steps=0"), "field 'training.steps': expected a whole number from 1 to 100000000, got 0"),
        (("--set", "training.steps"), "expected FIELD=VALUE"),
        (("--set", "data.time_step=[0.1"), "field 'data.time_step': the value is not TOML"),
        (("--set", "seed=1", "--set", "seed=2"), "field 'seed': is given twice"),
        (("--set", "training.steps=5", "--steps", "6"), "field 'training.steps' is given twice"),
        (("--resume", "x", "--set", "seed=1"), "--resume"),
    ],
)
def test_bad_arguments_are_one_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    told = cli("discover", *arguments)
    assert told.code == 2
    assert named in only_line(told.err)
    assert not list(tmp_path.iterdir())


def test_a_run_of_another_architecture_is_refused(cli: Cli, run: Path) -> None:
    described = run / "run.json"
    described.write_text(described.read_text().replace('"width": 4', '"width": 8'))
    told = cli("discover", "--resume", run)
    assert told.code == 2
    assert "its recipe is not the one" in only_line(told.err)


def _interrupted(folder: Path, number: signal.Signals) -> tuple[int, list[str]]:
    """The exit code and the lines of a run that is sent a signal after its first chunks."""
    path = folder / "long.toml"
    path.write_text(TINY.format(steps=200_000).replace("chunk = 50", "chunk = 500"))
    metrics = folder / "run" / "metrics.jsonl"
    with start("discover", path, "-o", folder / "run") as process:
        while not (metrics.exists() and metrics.stat().st_size):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate()
    return process.returncode, err.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_keeps_what_it_has_done(tmp_path: Path, number: signal.Signals, code: int) -> None:
    exit_code, (how, said) = _interrupted(tmp_path, number)
    assert exit_code == code
    assert how == f"continue with: fluxforge discover --resume {tmp_path / 'run'}"
    assert said.startswith("interrupted")
    steps = [json.loads(each)["step"] for each in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert 0 < steps[-1] < 200_000
    kept = [path.name for path in (tmp_path / "run" / "checkpoints").glob("*.safetensors")]
    assert f"step-{steps[-1]:09}.safetensors" in kept


def test_a_shipped_recipe_can_be_printed_and_started_from(cli: Cli, tmp_path: Path) -> None:
    shown = cli("discover", "midpoint", "--show")
    assert shown.code == 0
    (tmp_path / "mine.toml").write_text(shown.out, encoding="utf-8")
    assert recipe.load(tmp_path / "mine.toml") == recipe.load("midpoint")
    assert "# rounds of message passing" in shown.out
    large = cli("discover", "midpoint", "--show", "--preset", "paper")
    assert large.out != shown.out
    assert cli("discover", "downwind", "--show").code == 2


def test_set_changes_any_field_of_the_run(run: Path) -> None:
    held = json.loads((run / "run.json").read_text())["recipe"]
    assert (held["training"]["steps"], held["network"]["aggregate"]) == (150, "mean")
    assert held["arms"] == {"sparse": 1e-3, "dense": 1e-9}
    assert (held["training"]["chunk"], held["network"]["width"]) == (50, 4)


def test_show_prints_the_recipe_with_what_is_set(cli: Cli, tmp_path: Path) -> None:
    shown = cli("discover", "--show", "--set", "network.update=direct", "--steps", "500")
    assert shown.code == 0
    (tmp_path / "mine.toml").write_text(shown.out, encoding="utf-8")
    assert recipe.load(tmp_path / "mine.toml") == recipe.override(
        recipe.load("first-order"), {"network.update": "direct", "training.steps": 500}
    )
    assert "# the paper does not say" in shown.out
    again = cli("discover", tmp_path / "mine.toml", "--show", "--set", "seed=4")
    assert "\nseed = 4  # of the data" in again.out
    assert cli("discover", "--show", "--set", "training.step=1").code == 2
