"""Outputs of a finished run: checked when it is resumed, restored where missing, reported where changed."""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import toy_pipeline
from fluxforge.cli import main
from fluxforge.distil import Front
from fluxforge.errors import DiscoveryError, DocumentError, FluxforgeError, InputError, StorageError
from fluxforge.pipeline import _discover, _distillation, discover, resume
from fluxforge.run import RunFolder


@pytest.fixture(scope="module", autouse=True)
def _toy() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        toy_pipeline.install(patch.setattr)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    discover("first-order", folder, warn=pytest.fail)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of a finished run."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def told(run: Path) -> list[str]:
    """The warnings when a run is resumed."""
    warnings: list[str] = []
    resume(run, warn=warnings.append)
    return warnings


def test_an_unchanged_run_causes_no_message(run: Path) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert told(run) == []
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["scheme.json", "certificate.json", "report.html", "front.csv", "loss.png"])
def test_a_missing_output_is_restored_and_reported(name: str, run: Path) -> None:
    before = (run / name).read_bytes()
    (run / name).unlink()
    assert told(run) == [f"{run / name}: was missing and has been restored"]
    assert (run / name).read_bytes() == before
    assert told(run) == []


@pytest.mark.parametrize("name", ["scheme.json", "certificate.json", "report.html", "front.csv", "metrics.jsonl"])
def test_a_changed_output_is_named_and_not_restored(name: str, run: Path) -> None:
    (run / name).write_bytes((run / name).read_bytes() + b"\n")
    before = (run / name).read_bytes()
    for _ in range(2):
        (warning,) = told(run)
        assert warning.startswith(f"{run / name}: has changed since the run wrote it (its SHA-256 differs)")
        assert (run / name).read_bytes() == before


@pytest.mark.parametrize("name", ["metrics.jsonl", "checkpoints/step-000000006.safetensors"])
def test_a_missing_output_of_training_is_named_and_not_restored(name: str, run: Path) -> None:
    (run / name).unlink()
    assert told(run) == [f"{run / name}: is missing and cannot be restored"]
    assert not (run / name).exists()


def test_a_report_is_not_made_from_other_metrics_than_the_runs(run: Path) -> None:
    (run / "metrics.jsonl").write_text('{"step": 1, "supervised": [0.0]}\n')
    (run / "report.html").unlink()
    changed, missing = told(run)
    assert changed.startswith(f"{run / 'metrics.jsonl'}: has changed since the run wrote it")
    assert missing == f"{run / 'report.html'}: is missing and cannot be restored"


def test_a_report_is_restored_from_the_formula_that_was_found_and_not_from_an_edited_one(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    real = toy_pipeline._verify
    monkeypatch.setattr(
        _discover, "verify_scheme", lambda scheme, tell: names.append(scheme.name) or real(scheme, tell)
    )
    (run / "scheme.json").write_text((run / "scheme.json").read_text().replace("discovered-", "edited-"))
    (run / "report.html").unlink()
    assert len(told(run)) == 2
    assert names == ["discovered-first-order"]


def test_the_terminal_names_what_was_restored(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "scheme.json").unlink()
    assert main(["discover", "--resume", str(run), "--json"]) == 0
    captured = capsys.readouterr()
    assert "scheme.json: was missing and has been restored" in " ".join(captured.err.split())
    assert json.loads(captured.out)["verdict"] == "recovered"


def test_a_finished_run_whose_recipe_was_changed_is_refused(run: Path) -> None:
    described = (run / "run.json").read_text()
    (run / "run.json").write_text(described.replace('"width": 64', '"width": 32'))
    with pytest.raises(InputError, match=r"run\.json: its recipe is not the one that the run was made with"):
        resume(run)


@pytest.mark.parametrize("name", ["../escaped.json", "/tmp/escaped.json", "a/../../escaped.json", ""])
def test_a_record_that_names_files_elsewhere_is_refused(name: str, run: Path) -> None:
    with RunFolder.open(run, warn=pytest.fail) as folder:
        record = folder.read_stage("outputs")
        assert record is not None
        folder.finish("outputs", {**record, "files": {name: "0" * 64}, "texts": {name: "mine"}})
    with pytest.raises(DocumentError, match=r"outputs\.json: is not a record of a run's files"):
        resume(run)
    assert not (run.parent / "escaped.json").exists()


def test_a_full_disk_is_an_error_when_outputs_are_restored(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run / "scheme.json").unlink()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(StorageError, match=r"scheme\.json: cannot be written \(No space left on device\)"):
            resume(run)
    assert told(run) == [f"{run / 'scheme.json'}: was missing and has been restored"]


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    "error",
    [
        StorageError("disk"),
        MemoryError(),
        KeyError("bug"),
        InputError("field"),
        FluxforgeError("engine"),
        OSError(5, ""),
    ],
)
def test_only_a_finding_about_formulas_becomes_a_refusal(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(_distillation, "search_module", failing(error))
        with pytest.raises(type(error)):
            discover("first-order", tmp_path / "run")
    assert not (tmp_path / "run" / "stages" / "discovery.json").exists()
    assert resume(tmp_path / "run").verdict == "recovered"


def test_a_finding_about_formulas_is_a_refusal_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_distillation, "search_module", failing(DiscoveryError("stage distil: nothing was found")))
    document = discover("first-order", tmp_path / "run").document
    assert (document["verdict"], document["reasons"]) == ("refused", ["stage distil: nothing was found"])


def test_a_search_that_the_clock_ended_is_told_in_the_document_and_on_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = toy_pipeline._search
    monkeypatch.setattr(
        _distillation, "search_module", lambda each, spec: Front(real(each, spec).candidates, each.name == "T_new")
    )
    for arguments in (["first-order", "-o", str(tmp_path / "run")], ["--resume", str(tmp_path / "run")]):
        assert main(["discover", *arguments, "--json"]) == 0
        captured = capsys.readouterr()
        document = json.loads(captured.out)
        assert document["ended_by_clock"] == ["T_new"]
        assert [front["ended_by_clock"] for front in document["fronts"].values()] == [False, True]
        assert "warning: the search was stopped by its time limit, search.seconds, for T_new" in " ".join(
            captured.err.split()
        )
