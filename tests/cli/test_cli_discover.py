"""`fluxforge discover`: recipes, run folders, interruptions."""

import json
import signal
import time
from pathlib import Path

import pytest
from cli_runs import Cli, only_line, start

from fluxforge import recipe
from fluxforge.cli._discover import RECIPES

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


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY.format(steps=300))
    return path


def test_the_names_a_shell_completes_are_the_shipped_recipes() -> None:
    assert set(RECIPES) == set(recipe.listing())


def test_a_run_leaves_its_results_and_says_the_same_when_gone_on_with(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    told = cli("discover", tiny, "-o", tmp_path / "run", "--json")
    assert told.err == ""
    assert told.code == 0
    document = told.json
    for arm in ("sparse", "dense"):
        for name in ("train_mae", "ood_mse", "rollout_mse", "nonzeros"):
            assert len(document[arm][name]) == 2
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {
        "run.json", "metrics.jsonl", "checkpoints", "generalisation.json", "generalisation.png", "generalisation.svg",
    }  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [50, 100, 150, 200, 250, 300]
    assert all(len(line["supervised"]) == 4 for line in lines)
    again = cli("discover", "--resume", tmp_path / "run", "--json").json
    assert {**again, "seconds": 0} == {**document, "seconds": 0}
    assert "train" in cli("discover", "--resume", tmp_path / "run").out


def test_a_folder_that_holds_a_run_is_not_begun_again(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    assert cli("discover", tiny, "-o", tmp_path / "run").code == 0
    before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    told = cli("discover", tiny, "-o", tmp_path / "run")
    assert told.code == 2
    assert "--resume" in only_line(told.err)
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before


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


def test_a_run_of_another_architecture_is_refused(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    assert cli("discover", tiny, "-o", tmp_path / "run").code == 0
    described = tmp_path / "run" / "run.json"
    described.write_text(described.read_text().replace('"width": 4', '"width": 8'))
    told = cli("discover", "--resume", tmp_path / "run")
    assert told.code == 2
    assert "another architecture" in only_line(told.err)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_ends_as_if_it_had_not_been(
    cli: Cli, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY.format(steps=60_000).replace("chunk = 50", "chunk = 500"))
    process = start("discover", path, "-o", tmp_path / "run")
    metrics = tmp_path / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.exists() and metrics.stat().st_size) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert only_line(err).startswith("interrupted")
    done = json.loads(metrics.read_text().splitlines()[-1])["step"]
    assert 0 < done < 60_000
    assert list((tmp_path / "run" / "checkpoints").glob(f"step-{done:09}.safetensors"))
    assert cli("discover", "--resume", tmp_path / "run").code == 0
    assert cli("discover", path, "-o", tmp_path / "whole").code == 0
    assert metrics.read_bytes() == (tmp_path / "whole" / "metrics.jsonl").read_bytes()
    last = "checkpoints/step-000060000.safetensors"
    assert (tmp_path / "run" / last).read_bytes() == (tmp_path / "whole" / last).read_bytes()
