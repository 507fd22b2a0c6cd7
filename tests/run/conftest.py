"""Fixtures that the tests of run folders share."""

from pathlib import Path

import pytest

from fluxforge.run import Checkpoints


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints", warn=pytest.fail)
