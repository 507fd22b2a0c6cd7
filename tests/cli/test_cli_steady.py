"""`fluxforge simulate --steady`."""

from pathlib import Path

import pytest
from cli_runs import Cli, only_line

from fluxforge.mesh import squares, write

WALLS = "left=1, right=0, rest=insulated"


@pytest.fixture
def plate(tmp_path: Path) -> Path:
    path = tmp_path / "plate.msh"
    write(squares(4), path)
    return path


def test_a_steady_state_is_printed_and_written(cli: Cli, plate: Path, tmp_path: Path) -> None:
    options = ("--mesh", plate, "--steady", "--equation", "conduction", "--boundary", WALLS)
    told = cli("simulate", "corrected", *options, "-o", tmp_path / "out")
    assert told.code == 0
    assert "residual" in told.out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["T_0.vtu", "final.png", "summary.json"]
    summary = cli("simulate", "corrected", *options, "--json").json
    assert summary["cells"] == 16
    assert summary["max"] == pytest.approx(0.875, abs=1e-12)
    assert summary["files"] == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("euler", "--boundary", "insulated"), "no wall is held at a value"),
        (("euler", "--compare", "rk4", "--boundary", WALLS), "--steady computes one field with one scheme"),
        (("euler", "--solver", "cg", "--boundary", WALLS), "--solver with --steady should be one of auto, direct"),
        (("euler", "--end-time", "1", "--boundary", WALLS), "--steady takes no time steps"),
        (("euler", "--dt", "auto", "--boundary", WALLS), "--steady takes no time steps"),
        (
            ("corrected", "--equation", "anisotropic", "--set", "K=((2, 1), (1, 2))", "--boundary", "left=robin:1:0"),
            "the boundary condition of 'left': scheme 'corrected' does not support a robin wall with the tensor K",
        ),
    ],
)
def test_what_has_no_steady_state_is_one_line(cli: Cli, plate: Path, options: tuple[str, ...], words: str) -> None:
    told = cli("simulate", *options, "--steady", "--mesh", plate)
    assert told.code == 2
    assert words in only_line(told.err)
