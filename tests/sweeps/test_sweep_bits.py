"""Real, small runs: a sweep gives the bits of `discover`, also after its worker was killed."""

from pathlib import Path

import jax
import pytest

import fluxforge as ff
from fluxforge import recipe
from run_files import SMALL, read_files

TINY = {
    "name": "tiny",
    "arms": {"dense": 0.0},
    "data": {"kind": "two-cells", "graphs": 10},
    "network": {"features": "simplified", "mlp": "relu", "depth": 2, "width": 4, "update": "direct"},
    "loss": {"supervised": {}},
    "training": {"steps": 60, "batch": 4, "chunk": 10, "checkpoint_every": 20},
    "evaluation": {"meshes": 1, "cells": 30, "engine": "builtin", "rollout": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["arms", "search"])
def test_a_killed_and_resumed_worker_gives_the_bits_of_discover(
    kind: str, marks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = recipe.from_dict(TINY, "tiny") if kind == "arms" else recipe.override(recipe.load("first-order"), SMALL)
    # What these compile, in the cache of the tests, the workers need not compile again.
    # 32 bits unless asked for more, as in a new process: what is measured of a recipe with arms depends on it.
    for seed in (5, 6):
        with jax.enable_x64(False):
            ff.discover(spec, tmp_path / f"alone-{seed}", changes={"seed": seed})
    monkeypatch.setenv("SWEEP_REAL", "yes")
    monkeypatch.setenv("SWEEP_FAULTS", "kill:seed=5:checkpoint 40")
    warned: list[str] = []
    ended = ff.sweep(spec, {"seed": [5, 6]}, tmp_path / "s", workers=1, warn=warned.append)
    assert [point.outcome for point in ended.points] == ["finished"] * 2
    assert len(warned) == 1
    assert (marks / "begun").read_text().split() == ["seed=5", "seed=5", "seed=6"]
    for seed in (5, 6):
        alone, swept = read_files(tmp_path / f"alone-{seed}"), read_files(tmp_path / f"s/runs/seed={seed}")
        assert swept == alone
    assert read_files(tmp_path / "alone-5")["metrics.jsonl"] != read_files(tmp_path / "alone-6")["metrics.jsonl"]
