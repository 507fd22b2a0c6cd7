"""Steady states that are solved for: exact ones, the limit of runs, what has none, and the files they leave."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fluxforge as ff
from fluxforge.errors import InputError, NumericalError
from fluxforge.mesh import Dirichlet, Neumann, jittered, squares
from fluxforge.stepping import _steady, overshoot
from strategies import islands

WALLS = {"left": 1.0, "right": 0.0, "bottom": Neumann(), "top": Neumann(0.2)}
MESH = jittered(12, 0.2, 1)
VARYING = {"k": "1 + 9*x", "rhoc": "2 + y"}


def test_a_linear_field_is_the_steady_state_of_linear_walls() -> None:
    state = ff.steady("corrected", MESH, boundary=Dirichlet("1 + 2*x - y"))
    assert np.abs(state.field - (1 + state.graph.x @ np.array([2.0, -1.0]))).max() < 1e-12
    assert state.residual < 1e-14


@pytest.mark.parametrize("scheme", ["euler", "corrected", "corrected-rk4"])
def test_a_long_run_approaches_the_steady_state(scheme: str) -> None:
    state = ff.steady(scheme, squares(6), equation="conduction", parameters=VARYING, boundary=WALLS, source="x*y")
    implicit = scheme.partition("-")[0] + "-implicit" if scheme != "euler" else "implicit"
    run = ff.simulate(
        implicit,
        squares(6),
        equation="conduction",
        parameters=VARYING,
        boundary=WALLS,
        source="x*y",
        dt=10.0,
        steps=30,
    )
    # The slowest mode decays by 1/(1 + 10 |λ|), |λ| > 1, in each of 30 steps.
    assert np.abs(run.final - state.field).max() < 1e-11


@pytest.mark.parametrize("solver", ["bicgstab", "gmres", "amg"])
@pytest.mark.parametrize("scheme", ["implicit", "corrected"])
def test_solvers_agree(scheme: str, solver: str) -> None:
    options = {"equation": "conduction", "parameters": VARYING, "boundary": WALLS}
    if (scheme, solver) == ("corrected", "amg"):
        with pytest.raises(InputError, match="'corrected' has no symmetric M-matrix on this mesh"):
            ff.steady(scheme, MESH, solver=solver, **options)
        return
    direct, iterated = (ff.steady(scheme, MESH, solver=each, **options).field for each in ("direct", solver))
    # A residual of 1e-13 times the condition number of 288 cells, about 1e4.
    assert np.abs(direct - iterated).max() <= 1e-9


def test_large_meshes_are_iterated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_steady, "DIRECT_MOST_CELLS", 10)
    monkeypatch.setattr(_steady, "factorise", None)
    for scheme in ("euler", "corrected"):
        assert ff.steady(scheme, MESH, boundary=WALLS).residual < 1e-12


def test_without_a_held_wall_there_is_no_steady_state() -> None:
    with pytest.raises(
        InputError, match="no wall is held at a value, so that the steady state is determined only up to a constant"
    ):
        ff.steady("corrected", MESH, boundary=Neumann())
    # Three parts, of which the last has a wall of its own.
    mesh = islands()
    apart = replace(mesh, boundary={"apart": np.array([[7, 8], [8, 9], [9, 7]])})
    walls = dict.fromkeys(ff.dual(apart).tags, Neumann())
    with pytest.raises(InputError, match="in one of 3 separate parts of the mesh, no wall is held"):
        ff.steady("euler", apart, boundary=walls | {"apart": Dirichlet()})
    assert not ff.steady("euler", mesh).field.any()


def test_a_reaction_that_decays_needs_no_wall(tmp_path: Path) -> None:
    decay = tmp_path / "decay.toml"
    decay.write_text(
        'name = "decay"\ndiffusion = "D"\nreaction = "-r*u"\n'
        "[parameters.D]\ndefault = 1.0\n[parameters.r]\ndefault = 2.0\n"
    )
    state = ff.steady("corrected", MESH, equation=decay, boundary=Neumann(), source=3.0)
    assert np.abs(state.field - 1.5).max() < 1e-12


def test_what_is_not_linear_is_refused() -> None:
    with pytest.raises(InputError, match="scheme 'euler' is not linear in u"):
        ff.steady("euler", MESH, equation="burgers", parameters={"direction": (1.0, 0.0)})


def test_an_unsolved_system_is_a_numerical_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong:
        def __init__(self, A: object) -> None:
            self.A = A

        def solve(self, r: np.ndarray, *, within: float) -> np.ndarray:
            return 0.1 * r

    monkeypatch.setattr(_steady, "DirectSolver", Wrong)
    with pytest.raises(NumericalError, match="the steady state was not found"):
        ff.steady("euler", MESH, boundary=WALLS)


def test_a_steady_state_has_a_repr_and_is_saved_once(tmp_path: Path) -> None:
    state = ff.steady("corrected", MESH, boundary=WALLS)
    assert repr(state).startswith("SteadyState(corrected on 288 cells: T from ")
    written = state.save(tmp_path / "out")
    assert [path.name for path in written] == ["T_0.vtu", "final.png", "summary.json"]
    assert all(path.stat().st_size for path in written)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["cells"] == 288
    assert summary["max"] == state.field.max()
    with pytest.raises(InputError, match="holds an earlier run"):
        state.save(tmp_path / "out")
    state.save(tmp_path / "out", overwrite=True)


def test_overshoot_counts_from_the_data() -> None:
    state = ff.steady("euler", MESH, boundary=WALLS | {"top": Neumann()})
    assert state.overshoot() == (0.0, 0.0)
    T = np.linspace(-0.25, 1.5, state.graph.cells)
    assert overshoot(T, state.graph) == (0.25, 0.5)
    assert overshoot(T, state.graph, np.full(state.graph.cells, 1.25)) == (0.25, 0.25)
    with pytest.raises(InputError, match="no wall has a given value"):
        overshoot(T, ff.dual(MESH, Neumann()))
