"""`fluxforge equations`, and parameters by --set: formulas, regions, stream functions, files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_runs import Cli, only_line

from fluxforge.cli._arguments import EQUATIONS, complete_one
from fluxforge.mesh import dual, squares, write
from fluxforge.pde import BUILT_IN


@pytest.fixture
def halves(tmp_path: Path) -> Path:
    """Squares in two regions, one on either side of x = 1/2, four rows of four."""
    mesh = squares(4)
    left = dual(mesh).x[:, 0] < 0.5
    path = tmp_path / "halves.msh"
    write(replace(mesh, regions={"steel": np.flatnonzero(left), "air": np.flatnonzero(~left)}), path)
    return path


def test_copied_names_are_those_of_the_library() -> None:
    assert tuple(BUILT_IN) == EQUATIONS
    assert complete_one(EQUATIONS)("adv") == ["advection", "advection-diffusion"]


def test_equations_are_listed(cli: Cli) -> None:
    listed = cli("equations", "--json").json["equations"]
    assert [each["name"] for each in listed] == list(BUILT_IN)
    burgers = next(each for each in listed if each["name"] == "burgers")
    assert burgers["equation"] == "∂u/∂t + ∇·(direction u**2/2) = S"
    assert burgers["parameters"][0]["default"] == [1.0, 0.0]
    told = cli("equations")
    assert (told.code, told.err) == (0, "")
    assert all(name in told.out for name in BUILT_IN)
    assert all(p.meaning in told.out for equation in BUILT_IN.values() for p in equation.parameters)


def test_one_equation_is_shown_in_full(cli: Cli) -> None:
    told = cli("equations", "conduction")
    assert told.code == 0
    assert "rhoc ∂T/∂t = ∇·(k ∇T) + S" in told.out
    assert "2*k_N*k_P/delta/(k_N + k_P)" in told.out
    assert cli("equations", "conduction", "--json").json["name"] == "conduction"
    refused = cli("equations", "conductoin")
    assert refused.code == 2
    assert "Did you mean 'conduction'?" in only_line(refused.err)


def run(cli: Cli, halves: Path, scheme: str, equation: str, *words: object):
    return cli("simulate", scheme, "--equation", equation, "--mesh", halves, "--json", *words)


def test_ways_to_say_the_same_conductivity(cli: Cli, halves: Path, tmp_path: Path) -> None:
    k = np.where(dual(halves).x[:, 0] > 0.5, 3.0, 1.0)
    np.save(tmp_path / "k.npy", k)
    write(squares(4), tmp_path / "k.vtu", cell_data={"k": k, "other": 0 * k})
    ways = (
        "k=1 + 2*(x > 0.5)",
        "k=where(x < 1/2, 1, 3)",
        "k=steel: 1, air: 3",
        "k=steel: 1, rest: 3",
        f"k=@{tmp_path / 'k.npy'}",
        f"k=@{tmp_path / 'k.vtu'}",
        f"k=@{tmp_path / 'k.vtu'}:k",
    )
    words = ("--initial", "x", "--boundary", "insulated", "--dt", 0.005, "--steps", 5)
    energies = {run(cli, halves, "euler", "conduction", "--set", way, *words).json["energy"] for way in ways}
    assert len(energies) == 1


def test_ways_to_say_the_same_velocity(cli: Cli, halves: Path, tmp_path: Path) -> None:
    graph = dual(halves)
    a = np.stack([0.5 - graph.centre[:, 1], graph.centre[:, 0] - 0.5], axis=1)
    np.save(tmp_path / "vectors.npy", a)
    np.save(tmp_path / "normal.npy", np.einsum("fi,fi->f", a, graph.n))
    ways = (
        "velocity=(0.5 - y, x - 0.5)",
        "velocity=curl(x/2 - x**2/2 + y/2 - y**2/2)",
        f"velocity=@{tmp_path / 'vectors.npy'}",
        f"velocity=@{tmp_path / 'normal.npy'}",
    )
    words = ("--initial", "x*y", "--dt", 0.05, "--steps", 3)
    told = [run(cli, halves, "euler", "advection", "--set", way, *words) for way in ways]
    for each in told:
        # Differences of ψ round differently from a·n, by some units in the last place of numbers below 1.
        assert each.json["energy"] == pytest.approx(told[0].json["energy"], rel=1e-13)
        (note,) = each.json["notes"]
        assert note.startswith("the discrete divergence of velocity is ")
        assert note.endswith("of the flow through a cell: constants are preserved")


def test_a_velocity_with_sources_is_noted(cli: Cli, halves: Path) -> None:
    told = run(cli, halves, "euler", "advection", "--set", "velocity=(x, y)", "--initial", 1, "--steps", 2)
    (note,) = told.json["notes"]
    assert note.endswith(": constants are not preserved")


def test_a_reaction_is_replaced(cli: Cli, halves: Path) -> None:
    words = ("--initial", 0.1, "--boundary", "insulated", "--dt", 0.01, "--steps", 100)
    told = run(cli, halves, "rk4", "reaction-diffusion", "--set", "reaction=u - u**3", *words)
    # u² = 1/(1 + 99 exp(-2t)) at t = 1; each of the steps errs by less than dt⁵.
    assert told.json["max"] == pytest.approx((1 + 99 * np.exp(-2.0)) ** -0.5, abs=100 * 0.01**5)


@pytest.mark.parametrize(
    ("equation", "setting", "said"),
    [
        ("conduction", "k=steel: 1", "parameter 'k': region 'air' has no value"),
        ("conduction", "k=brass: 1, rest: 2", "the mesh has no region 'brass'; it has: steel, air"),
        ("conduction", "k=x - 1/2", "parameter k: the diffusion should be positive, got -0.375 in cell"),
        ("conduction", "k=1 + (x < y < 1)", "parameter 'k': a chain of comparisons"),
        ("conduction", "k=@nothing.npy", "--set k: nothing.npy: "),
        ("anisotropic", "K=((1, 2), (2, 1))", "parameter 'K' should be 2 rows of 2 numbers"),
        ("anisotropic", "K=((1, 0), (0, x - 1))", "positive definite; it is [[1.0, 0.0], [0.0, -0.875]] in cell"),
        ("advection", "velocity=(1, 0, 0)", "parameter 'velocity' should have 2 components"),
        ("advection", "velocity=(1, log(x - 1))", "parameter 'velocity', component 2: the formula"),
        ("reaction-diffusion", "reaction=u*w", "equation 'reaction-diffusion': reaction: unknown symbol 'w'"),
        ("reaction-diffusion", "reaction=D*u", "the term of 'reaction' has the unit"),
    ],
)
def test_bad_values_are_one_line(cli: Cli, halves: Path, equation: str, setting: str, said: str) -> None:
    told = cli("simulate", "euler", "--equation", equation, "--mesh", halves, "--set", setting)
    assert told.code == 2
    assert said in only_line(told.err)


def test_mesh_info_counts_the_cells_of_regions(cli: Cli, halves: Path) -> None:
    assert cli("mesh", "info", halves, "--json").json["regions"] == {"steel": 8, "air": 8}
    assert "steel 8, air 8" in cli("mesh", "info", halves).out


def test_a_name_is_given_once(cli: Cli, halves: Path) -> None:
    told = run(cli, halves, "euler", "conduction", "--set", "k=1", "--set", "k=2")
    assert "--set k is given twice" in only_line(told.err)
    told = cli("simulate", "euler", "--mesh", halves, "--set", "reaction=-T")
    assert "--set reaction should be a formula of the unknown, together with --equation NAME" in only_line(told.err)


def test_a_file_of_another_size_is_refused(cli: Cli, halves: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "k.npy", np.ones(15))
    told = run(cli, halves, "euler", "conduction", "--set", f"k=@{tmp_path / 'k.npy'}")
    assert told.code == 2
    assert "k.npy: holds values of shape (15,), and the mesh has 16 cells and 40 faces" in only_line(told.err)
