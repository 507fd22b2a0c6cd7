"""An interrupted and resumed run of `discover skew` gives the result of an uninterrupted one; no stage is repeated."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import skew_kill_worker

from fluxforge.pipeline import _skew, _skew_stages, discover, resume
from fluxforge.skew import FAMILIES, OBJECTIVES, Coefficients, Judge, load_coefficients
from run_files import drop_fields, flip_last_bit, read_files
from toy_pipeline import _verify

SEARCH = [f"skew-search-{name}" for name in ("spread", *OBJECTIVES)]
VALIDATED = [f"skew-validated-{name}" for name in (*FAMILIES, "stretched")]


# Digests of documents with times, and the file of a process.
NAMED = ("stages/outputs.json", "run.lock")


class StopError(Exception):
    """Ends a run where it is raised."""


def test_a_damaged_file_of_a_network_is_not_read(tmp_path):
    saved = Coefficients(((np.ones((3, 2)), np.zeros(3)),), np.zeros(2), np.ones(2))
    saved.save(tmp_path / "network.safetensors")
    kept = load_coefficients(tmp_path / "network.safetensors")
    assert kept is not None
    assert np.array_equal(kept.layers[0][0], saved.layers[0][0])
    flip_last_bit(tmp_path / "network.safetensors")
    assert load_coefficients(tmp_path / "network.safetensors") is None


def test_finished_stages_are_not_repeated(tmp_path, monkeypatch):
    skew_kill_worker.shrink(monkeypatch.setattr)
    # A real certificate costs more than all the rest, and is no stage.
    monkeypatch.setattr(_skew, "verify_scheme", _verify)
    monkeypatch.setattr(_skew, "summarise", lambda *_: "not verified")
    whole = discover("skew", tmp_path / "whole", changes=skew_kill_worker.SMALL)
    calls: list[object] = []
    real_judge, real_score = Judge.__call__, _skew_stages.score_family

    def judge(self, constants, stop=None):
        calls.append(constants)
        if len(calls) == stop:
            raise StopError
        return real_judge(self, constants)

    def score(family, laws, **options):
        raise StopError

    trials = len(whole.document["trials"])
    # In the middle of the search, then where the laws are to be validated.
    monkeypatch.setattr(Judge, "__call__", lambda self, constants: judge(self, constants, stop=trials // 2))
    with pytest.raises(StopError):
        discover("skew", tmp_path / "run", changes=skew_kill_worker.SMALL)
    finished = [name for name in SEARCH if (tmp_path / "run" / "stages" / f"{name}.json").exists()]
    assert 0 < len(finished) < len(SEARCH)
    kept = sum(
        len(json.loads((tmp_path / f"run/stages/{name}.json").read_text())["result"]["trials"]) for name in finished
    )

    calls.clear()
    monkeypatch.setattr(Judge, "__call__", judge)
    monkeypatch.setattr(_skew_stages, "score_family", score)
    with pytest.raises(StopError):
        resume(tmp_path / "run")
    assert len(calls) == trials - kept
    calls.clear()
    monkeypatch.setattr(_skew_stages, "score_family", real_score)
    flip_last_bit(tmp_path / "run/network.safetensors")
    warnings: list[str] = []
    again = resume(tmp_path / "run", warn=warnings.append)
    (warning,) = warnings
    assert "network.safetensors: is damaged" in warning
    assert not calls
    assert drop_fields(again.document) == drop_fields(whole.document)
    assert read_files(tmp_path / "run", without=NAMED) == read_files(tmp_path / "whole", without=NAMED)


@pytest.mark.slow
def test_kills_at_every_few_writes_change_nothing(tmp_path):
    assert ended(tmp_path / "whole", -1) == 0
    # Every process gets further than the one before, to the files after the last family, which are written anew.
    assert [ended(tmp_path / "run", 8) for _ in range(7)] == [-signal.SIGKILL] * 7
    assert {path.stem for path in (tmp_path / "run/stages").iterdir()} >= {*SEARCH, *VALIDATED}
    assert ended(tmp_path / "run", -1) == 0
    assert read_files(tmp_path / "run", without=NAMED) == read_files(tmp_path / "whole", without=NAMED)
    assert {path.stem for path in (tmp_path / "run/stages").iterdir()} >= {*SEARCH, *VALIDATED, "skew"}


def ended(folder: Path, write: int) -> int:
    """The exit code of a process that runs in a folder, killed at a write if that is not −1."""
    places = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(skew_kill_worker.__file__), str(folder), str(write)]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": places}, timeout=900, check=False).returncode
