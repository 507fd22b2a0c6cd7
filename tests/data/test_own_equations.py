"""Problems of other equations: answers by hand, by the schemes' steppers, and steps in units of the reference step."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge import recipe
from fluxforge.data import Model, Problem, ensemble, heat, linearise, pose, problem, reference_number, source
from fluxforge.graph import pad_graph
from fluxforge.loss import hermite_residual, theta_residual
from fluxforge.mesh import Neumann, dual, jittered, reference_step, squares, unit_volume
from fluxforge.pde import HEAT
from fluxforge.scheme import TABLEAUX, integrate
from fluxforge.stepping import general_stepper
from own_equations import CUBIC, FISHER, MIXED, equation

FOURIER = jnp.asarray(0.4, "float64")
VALUES = {"D": 0.7, "r": 1.3}
MIXED_VALUES: dict[str, Any] = {"c": 1.4, "a": (0.6, -0.3), "k": 0.8, "b": 0.9}


def model(text: str, folder: Path, values: dict[str, Any]) -> Model:
    return Model(equation(text, folder), tuple(values.items()))


@eqx.filter_jit
def draw(mesh: Any, key: jax.Array, own: Model) -> Problem:
    """Compiled once for each equation."""
    return pose(mesh, key, field=jnp.array(1), fourier=FOURIER, model=own)


def on_mesh(own: Model, seed: int = 0) -> tuple[Problem, Any]:
    """A random problem, and the graph it lies on with the same boundary values."""
    mesh = jittered(5, 0.2, seed)
    together = ensemble([mesh])
    posed = draw(together.member(0), jax.random.key(seed), own)
    graph, _ = unit_volume(dual(mesh))
    g = np.asarray(posed.graph.shown["dirichlet"].constant)[graph.cells :]
    return posed, eqx.tree_at(lambda each: each.value, graph, g)


def by_hand(p: Problem, reaction: Any) -> np.ndarray:
    """u + Δt (1/V Σ D A/δ (u_N − u_P) + r(u) + S), a sum over the slots of each cell."""
    p = jax.tree.map(np.asarray, p)
    edge, wall = p.graph.hops["edge"], p.graph.shown["dirichlet"]
    shown = wall.scale * p.T[wall.cell] + wall.constant
    answer = p.T.copy()
    for P, u in enumerate(p.T):
        slots = np.flatnonzero(edge.mask[P])
        A, delta = (edge.geometry[name][P, slots] for name in ("A", "delta"))
        received = p.parameters["D"] * (A / delta * (shown[edge.ends["N"][P, slots]] - u)).sum()
        answer[P] += p.dt * (received / p.graph.V[P] + reaction(u) + p.S[P])
    return answer


@pytest.mark.parametrize(("text", "power"), [(FISHER, 1), (CUBIC, 2)])
def test_the_answer_has_the_flux_and_the_reaction_of_the_equation(tmp_path: Path, text: str, power: int) -> None:
    posed, _ = on_mesh(model(text, tmp_path, VALUES))
    wanted = by_hand(posed, lambda u: VALUES["r"] * u * (1 - u**power))
    # Sums of at most five terms of size one: a few units in the last place.
    assert np.asarray(posed.answer) == pytest.approx(wanted, abs=1e-14)


@pytest.mark.parametrize("seed", range(2))
def test_answers_on_meshes_are_steps_of_the_equations_euler_scheme(tmp_path: Path, seed: int) -> None:
    """Vectors, capacities, parameters of cells and fluxes that are not linear included."""
    own = model(MIXED, tmp_path, MIXED_VALUES)
    posed, graph = on_mesh(own, seed)
    how: dict[str, Any] = {"parameters": MIXED_VALUES, "source": np.asarray(posed.S), "dtype": "float64"}
    step = general_stepper(integrate(TABLEAUX["euler"], own.equation), graph, dt=float(posed.dt), **how)
    assert np.asarray(posed.answer) == pytest.approx(np.asarray(step(np.asarray(posed.T))), abs=1e-13)


@pytest.mark.parametrize(("text", "values"), [(FISHER, VALUES), (MIXED, MIXED_VALUES)])
def test_steps_are_in_units_of_the_reference_step_in_the_problems_own_state(
    tmp_path: Path, text: str, values: dict[str, Any]
) -> None:
    own = model(text, tmp_path, values)
    posed, graph = on_mesh(own)
    longest = reference_step(own.equation, graph, values, np.asarray(posed.T))
    assert float(posed.dt) == pytest.approx(0.4 * longest, rel=1e-12)
    assert float(reference_number(posed)) == pytest.approx(0.4, rel=1e-12)


@pytest.mark.parametrize("kind", ["pairs", "two-cells", "meshes"])
def test_every_kind_of_data_is_made_by_the_recipes_equation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("FLUXFORGE_CACHE", str(tmp_path))
    data: dict[str, recipe.Data] = {
        "pairs": recipe.Pairs(),
        "two-cells": recipe.TwoCells(graphs=8),
        "meshes": recipe.Meshes(meshes=2, cells=(8, 12), engine="builtin"),
    }
    (tmp_path / "own.toml").write_text(FISHER)
    spec = recipe.Recipe(
        name="a",
        data=data[kind],
        equation=str(tmp_path / "own.toml"),
        parameters=VALUES,
        training=recipe.Training(precision="float64"),
    )
    batch = eqx.filter_jit(source(spec).batch)(jax.random.key(0), 4)
    assert {name: float(value[0]) for name, value in batch.parameters.items()} == VALUES
    for k in range(4):
        one = jax.tree.map(lambda leaf, k=k: leaf[k], batch)
        live = np.asarray(one.graph.live)
        wanted = by_hand(one, lambda u: VALUES["r"] * u * (1 - u))
        assert np.asarray(one.answer)[live] == pytest.approx(wanted[live], abs=1e-14)


def uniform(u: float, dt: float, own: Model) -> Problem:
    """The same value in every cell of an insulated mesh: du/dt = r u (1 − u), whatever the mesh."""
    around, parameters = own.put_on(pad_graph(dual(squares(3), Neumann())))
    T, S = jnp.full(9, u), jnp.zeros(9)
    return problem(around, T, S, dt=jnp.asarray(dt), parameters=parameters, equation=own.equation)


def logistic(u: float, t: float) -> float:
    """The exact solution of du/dt = r u (1 − u)."""
    growth = float(np.exp(VALUES["r"] * t))
    return u * growth / (1 + u * (growth - 1))


@pytest.mark.parametrize(("residual", "order"), [(theta_residual(0.0), 1), (theta_residual(0.5), 2)])
def test_theta_residuals_of_a_reaction_have_their_orders(tmp_path: Path, residual: Any, order: int) -> None:
    own = model(FISHER, tmp_path, VALUES)
    off = [float(np.abs(residual(uniform(0.3, dt, own), jnp.full(9, logistic(0.3, dt)))).max()) for dt in (0.02, 0.01)]
    assert np.log2(off[0] / off[1]) == pytest.approx(order, abs=0.05)
    assert off[1] > 1e-8


def test_the_hermite_residual_of_a_reaction_is_of_order_four(tmp_path: Path) -> None:
    """With f′ at one end for both, as is right for linear equations, it would be of order two."""
    own = model(FISHER, tmp_path, VALUES)
    off = [
        float(np.abs(hermite_residual()(uniform(0.1, dt, own), jnp.full(9, logistic(0.1, dt)))).max())
        for dt in (0.2, 0.1)
    ]
    assert np.log2(off[0] / off[1]) == pytest.approx(4.0, abs=0.2)


def test_the_slope_of_the_rate_shows_nothing_of_boundary_data(tmp_path: Path) -> None:
    posed, _ = on_mesh(model(FISHER, tmp_path, VALUES))
    v = jnp.asarray(np.random.default_rng(1).normal(size=len(posed.T)))
    h = 1e-6
    wanted = (np.asarray(posed.rate(posed.T + h * v)) - np.asarray(posed.rate(posed.T - h * v))) / (2 * h)
    # Central differences of a quadratic are exact but for round-off, 1e-16 over h.
    assert np.asarray(linearise(posed.rate, posed.T)(v)) == pytest.approx(wanted, abs=1e-8)


def test_heat_is_a_model_by_its_word() -> None:
    assert heat(2.5) == Model(HEAT, (("alpha", 2.5),))
    assert heat() == Model()
