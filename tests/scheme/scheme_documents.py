"""Documents for tests to modify, and the one line with which each should be refused."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from fluxforge.errors import DocumentError
from fluxforge.scheme import load, to_document
from fluxforge.scheme.reference import BUILT_IN

HEADER = {"format": "fluxforge-scheme", "format_version": 2}


def document(name: str = "euler") -> dict[str, Any]:
    return HEADER | copy.deepcopy(to_document(BUILT_IN[name]))


def refused(path: Path, content: object, match: str) -> str:
    """The one line that refuses this file."""
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with pytest.raises(DocumentError, match=match) as caught:
        load(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    assert "\r" not in line
    assert len(line) < 1000
    return line
