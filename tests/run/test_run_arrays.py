"""Files of arrays: a failure to write is an error that the command line can print."""

import re
from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError

from fluxforge.errors import InputError, StorageError
from fluxforge.run import _arrays


def test_a_full_disk_is_a_storage_error_that_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise SafetensorError("No space left on device")

    monkeypatch.setattr(_arrays, "save_file", full)
    path = tmp_path / "network.safetensors"
    wanted = f"{re.escape(str(path))}: cannot be written \\(No space left on device\\)$"
    with pytest.raises(StorageError, match=wanted):
        _arrays.write_arrays(path, {"a": np.ones(3)})
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be written"):
        _arrays.write_arrays(tmp_path / "file" / "network.safetensors", {"a": np.ones(3)})
