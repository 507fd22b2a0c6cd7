"""`fluxforge bench train`."""

from typing import Any

import pytest
from cli_runs import Cli, only_line

from fluxforge.bench import TrainBench, _step, _train

MEASURED: dict[str, Any] = {
    "parameters": 516,
    "batch": 4,
    "precision": "float32",
    "steps": 1000,
    "rounds": 15,
    "device": "cpu:0 a device",
    "ours_steps_per_s": 25_000.0,
    "pyg_device": "another device",
    "pyg_steps_per_s": 500.0,
    "pyg_threads": 2,
    "pyg_prepared_steps_per_s": 1000.0,
    "pyg_prepared_threads": 1,
    "ratio": 50.0,
    "ratio_prepared": 25.0,
    "seeds": 16,
    "seeds_steps_per_s": 64_000.0,
    "seeds_per_s": 0.711,
    "training_steps": 90_000,
    "versions": {"python": "3", "jax": "1", "equinox": "1", "optax": "1", "torch": None, "torch_geometric": None},
}
WITHOUT = dict.fromkeys(key for key in MEASURED if key.startswith(("pyg", "ratio")))


# PyTorch, where it is installed, warns of itself.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("peers", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_training_is_measured(cli: Cli, monkeypatch: pytest.MonkeyPatch, peers: bool) -> None:
    if not peers:
        monkeypatch.setattr(_train, "pyg_installed", lambda: False)
    monkeypatch.setattr(_train, "ROUNDS", 1)
    monkeypatch.setattr(_step, "LEAST_SECONDS", 1e-4)
    told = cli("bench", "train", "--steps", "1e1", "--seeds", "2", "--json")
    assert told.code == 0
    assert told.json.keys() == MEASURED.keys()
    assert told.json["versions"].keys() == MEASURED["versions"].keys()
    assert (told.json["steps"], told.json["seeds"]) == (10, 2)
    assert told.json["ours_steps_per_s"] > 0
    assert (told.json["ratio"] is None) == (not peers or told.json["versions"]["torch_geometric"] is None)


@pytest.mark.parametrize("columns", ["100", "60"])
def test_what_was_measured_is_shown(cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("fluxforge.bench._train.bench_train", lambda seeds, **options: TrainBench(**MEASURED))
    told = cli("bench", "train")
    assert max(map(len, told.out.splitlines())) <= int(columns)
    shown = " ".join(told.out.split())
    for words in ("516 parameters", "of 4 graphs", "a device", "another device", "2.5e+04", "40 µs", "2 ms", "1 ms"):
        assert words in shown
    for words in ("16 seeds", "6.4e+04", "90,000 steps", "0.711", "50", "25"):
        assert words in shown
    assert "pip install" not in shown


def test_without_pytorch_geometric_it_says_how_to_get_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    without = TrainBench(**(MEASURED | WITHOUT))
    monkeypatch.setattr("fluxforge.bench._train.bench_train", lambda seeds, **options: without)
    told = cli("bench", "train")
    assert told.code == 0
    assert "pip install 'fluxforge[bench]'" in told.out


def test_options_reach_the_benchmark(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def measure(seeds: int, *, steps: int, progress: object) -> TrainBench:
        asked.append((seeds, steps))
        return TrainBench(**MEASURED)

    monkeypatch.setattr("fluxforge.bench._train.bench_train", measure)
    assert cli("bench", "train", "--json").json == MEASURED
    assert cli("bench", "train", "--seeds", "5", "--steps", "2e3", "--json").code == 0
    assert asked == [(16, 1000), (5, 2000)]


@pytest.mark.parametrize("option", ["--steps", "--seeds"])
def test_nothing_to_measure_is_refused(cli: Cli, option: str) -> None:
    failed = cli("bench", "train", option, "0")
    assert failed.code == 2
    assert option.removeprefix("--") in only_line(failed.err)
