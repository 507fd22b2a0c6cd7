"""Bad parameters, sources and walls of equations, in the terminal: one line that names the field, exit code 2."""

from pathlib import Path

import pytest
from cli_runs import Cli, only_line

from fluxforge.mesh import squares, write


@pytest.fixture
def plate(tmp_path: Path) -> Path:
    path = tmp_path / "plate.msh"
    write(squares(3), path)
    return path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("advection", "--set", "velocity=(1, 2, 3)"), "parameter 'velocity' should have 2 components"),
        (("advection", "--set", "velocity=(1, u)"), "parameter 'velocity', component 2: unknown symbol 'u'"),
        (("conduction", "--set", "k=0"), "parameter k: the diffusion should be positive, got 0 in cell"),
        (("anisotropic", "--set", "K=((1, 2), (2, 1))"), "parameter 'K' should be 2 rows of 2 numbers"),
        (("heat", "--boundary", "left=periodic:top"), "do not match: the face at"),
        (("heat", "--source", "1/0"), "the source: division by zero"),
        (("heat", "--source", "1/(T-T)"), "the source: division by zero"),
        (("heat", "--source", "v"), "the source: unknown symbol 'v' at column 1 of \"v\"; known: T, t, x, y"),
        (("heat", "--boundary", "left=1/(t-t)"), "the boundary condition of 'left': division by zero"),
        (("heat", "--boundary", "left=inflow"), "the boundary condition of 'left': equation 'heat' has no velocity"),
        (
            ("advection", "--set", "velocity=(1, 0)", "--boundary", "left=robin:1:0"),
            "the boundary condition of 'left': equation 'advection' has no diffusion",
        ),
        (("heat", "--end-time", "inf"), "end_time should be finite"),
        (("reaction-diffusion", "--set", "reaction=1/u"), "the reaction is inf at (0.166667, 0.166667) of the initial"),
    ],
)
def test_a_bad_value_is_one_line_that_names_its_field(
    cli: Cli, plate: Path, options: tuple[str, ...], words: str
) -> None:
    told = cli("simulate", "euler", "--equation", *options, "--mesh", plate)
    assert told.code == 2
    assert words in only_line(told.err)


@pytest.mark.parametrize(("scheme", "when"), [("midpoint", "at time 0.0"), ("implicit", "in cell 0")])
def test_a_parameter_that_becomes_negative_during_a_run_is_refused(
    cli: Cli, plate: Path, scheme: str, when: str
) -> None:
    options = ("--set", "k=1 - 200*t", "--dt", "0.002", "--steps", "5", "--initial", "x")
    told = cli("simulate", scheme, "--equation", "conduction", *options, "--mesh", plate)
    assert told.code == 2
    line = only_line(told.err)
    assert "parameter k: the diffusion should be positive" in line
    assert when in line


@pytest.mark.parametrize("scheme", ["midpoint", "crank-nicolson"])
def test_a_robin_wall_that_becomes_negative_during_a_run_is_refused(cli: Cli, plate: Path, scheme: str) -> None:
    options = ("--boundary", "left=robin:1 - 200*t:0", "--dt", "0.002", "--steps", "5", "--initial", "x")
    told = cli("simulate", scheme, *options, "--mesh", plate)
    assert told.code == 2
    line = only_line(told.err)
    assert "h of the boundary condition of 'left' is " in line
    assert "it should be 0 or more" in line


@pytest.mark.parametrize(
    ("scheme", "equation", "more"),
    [("godunov-ssp2", "burgers", ()), ("scharfetter-gummel", "advection-diffusion", ("--set", "velocity=(1, 0)"))],
)
def test_named_schemes_that_suit_the_problem_get_no_note(
    cli: Cli, plate: Path, scheme: str, equation: str, more: tuple[str, ...]
) -> None:
    told = cli("simulate", scheme, "--equation", equation, *more, "--mesh", plate, "--initial", "x", "--steps", "2")
    assert told.code == 0
    assert scheme not in "".join(line for line in told.out.splitlines() if line.startswith("note:"))
