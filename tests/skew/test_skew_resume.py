"""An interrupted and resumed run of `discover skew` gives the result of an uninterrupted one; no stage is repeated."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import skew_kill_worker

from fluxforge.pipeline import _skew, _skew_stages, discover, resume
from fluxforge.skew import FAMILIES, OBJECTIVES, Judge
from toy_pipeline import _verify

SEARCH = [f"skew-search-{name}" for name in ("spread", *OBJECTIVES)]
VALIDATED = [f"skew-validated-{name}" for name in (*FAMILIES, "stretched")]


def timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [timeless(each) for each in value]
    if isinstance(value, dict):
        return {name: timeless(each) for name, each in value.items() if name not in ("seconds", "sha256")}
    return value


def contents(folder: Path) -> dict[str, Any]:
    """The files of a run: documents without times, everything else bit for bit; `outputs` has digests of both."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {
        name: timeless(json.loads(path.read_bytes())) if name.endswith(".json") else path.read_bytes()
        for name, path in files.items()
        if name not in ("stages/outputs.json", "run.lock")
    }


class StopError(Exception):
    """Ends a run where it is raised."""


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
    again = resume(tmp_path / "run")
    assert not calls
    assert timeless(again.document) == timeless(whole.document)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


@pytest.mark.slow
def test_kills_at_every_few_writes_change_nothing(tmp_path):
    assert ended(tmp_path / "whole", -1) == 0
    # Every process gets further than the one before, to the files after the last family, which are written anew.
    assert [ended(tmp_path / "run", 8) for _ in range(7)] == [-signal.SIGKILL] * 7
    assert {path.stem for path in (tmp_path / "run/stages").iterdir()} >= {*SEARCH, *VALIDATED}
    assert ended(tmp_path / "run", -1) == 0
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
    assert {path.stem for path in (tmp_path / "run/stages").iterdir()} >= {*SEARCH, *VALIDATED, "skew"}


def ended(folder: Path, write: int) -> int:
    """The exit code of a process that runs in a folder, killed at a write if that is not −1."""
    places = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(skew_kill_worker.__file__), str(folder), str(write)]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": places}, timeout=900, check=False).returncode
