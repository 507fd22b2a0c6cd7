"""Finished stages: a stage whose result is damaged or incomplete counts as unfinished."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from fluxforge.errors import FluxforgeError, InputError
from fluxforge.run import RunFolder

RESULT: dict[str, Any] = {"loss": 0.1, "formula": "α·A/δ", "table": [1, 2.5, None, True], "nested": {"b": 1, "a": []}}


def test_a_finished_stage_gives_its_result_back(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, description={}, warn=pytest.fail) as folder:
        assert folder.read_stage("train") is None
        folder.finish("train", RESULT)
        folder.finish("distil-2", {})
    with RunFolder.open(tmp_path, warn=pytest.fail) as folder:
        assert folder.read_stage("train") == RESULT
        assert folder.read_stage("distil-2") == {}
        assert folder.read_stage("verify") is None
        folder.finish("train", {"pair": (1, 2), "names": {3: 4}})
        assert folder.read_stage("train") == {"pair": [1, 2], "names": {"3": 4}}
    assert {item.name for item in (tmp_path / "stages").iterdir()} == {"train.json", "distil-2.json"}


def damages(text: str) -> list[str]:
    document = json.loads(text)
    return [
        "",
        text[: len(text) // 2],
        text.replace("0.1", "0.2"),
        json.dumps({**document, "stage": "distil"}),
        json.dumps({**document, "result": None}),
        json.dumps({**document, "format": "fluxforge-run"}),
        json.dumps({**document, "result": {"loss": float("nan")}}),
    ]


@pytest.mark.parametrize("index", range(7))
def test_a_damaged_stage_counts_as_not_finished_and_is_told(index: int, tmp_path: Path) -> None:
    told: list[str] = []
    with RunFolder.create(tmp_path, description={}, warn=told.append) as folder:
        folder.finish("train", RESULT)
        path = tmp_path / "stages" / "train.json"
        text = path.read_text(encoding="utf-8")
        path.write_text(damages(text)[index], encoding="utf-8")
        assert folder.read_stage("train") is None
        (warning,) = told
        assert warning.startswith(f"stage train counts as unfinished: {path}: ")
        folder.finish("train", RESULT)
        assert folder.read_stage("train") == RESULT


@pytest.mark.parametrize("stage", ["", "../run", "a/b", "Train", ".hidden", "a.b", "x" * 65, "a\n"])
def test_a_stage_that_is_no_file_name_is_refused(stage: str, tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, description={}, warn=pytest.fail) as folder:
        for ask in (lambda: folder.read_stage(stage), lambda: folder.finish(stage, {})):
            with pytest.raises(InputError, match="a name consists of lower-case letters"):
                ask()


@pytest.mark.parametrize("result", [{"a": float("inf")}, {"a": object()}, {"a": {1, 2}}])
def test_a_result_that_is_not_json_is_refused_and_the_old_one_stays(result: dict[str, Any], tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, description={}, warn=pytest.fail) as folder:
        folder.finish("train", RESULT)
        with pytest.raises(InputError, match=r"train\.json: cannot be written \(its content is not plain JSON"):
            folder.finish("train", result)
        assert folder.read_stage("train") == RESULT


def test_a_full_disk_while_finishing_leaves_the_old_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with RunFolder.create(tmp_path, description={}, warn=pytest.fail) as folder:
        folder.finish("train", RESULT)
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", full)
            with pytest.raises(FluxforgeError, match=r"train\.json: cannot be written \(No space left on device\)"):
                folder.finish("train", {})
        assert folder.read_stage("train") == RESULT
