"""Heat is neither made nor lost: per step to round-off, and over ten thousand steps."""

import numpy as np
import pytest

from fluxforge.mesh import Dirichlet, DualGraph, Neumann, dual, fourier_step
from fluxforge.scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import step_limit, stepper
from strategies import BOUNDARIES, MESHES, SIDED, noise, whole_step

INSULATED = {name: dual(MESHES[name], Neumann()) for name in (*SIDED, "fan", "arrow", "islands", "one")}
CLAIMING = [scheme for scheme in BUILT_IN.values() if scheme.claims.conservative]


@pytest.mark.parametrize("graph", INSULATED.values(), ids=list(INSULATED))
@pytest.mark.parametrize("scheme", CLAIMING, ids=str)
def test_one_step_keeps_the_heat_of_an_insulated_body(scheme: Scheme, graph: DualGraph) -> None:
    if scheme.name == "corrected" and graph is INSULATED["arrow"]:
        pytest.skip("all centroids in line with that triangle's: its gradient is not determined")
    dt = min(0.9 * fourier_step(graph, 1.9), 1.0)
    step = whole_step(scheme, graph, dt, 1.9)
    assert np.abs(graph.V @ step.M - graph.V).max() <= 5e-14 * graph.V.max()
    assert np.abs(step.b).max() <= 1e-14
    made = 0.0 if scheme.name == "crank-nicolson-printed" else dt
    assert np.abs(graph.V @ step.N - made * graph.V).max() <= 5e-14 * dt * graph.V.max()


@pytest.mark.parametrize("name", SIDED)
@pytest.mark.parametrize("scheme", CLAIMING, ids=str)
def test_what_enters_through_the_walls_is_what_they_are_told(scheme: Scheme, name: str) -> None:
    """Σ V b = Δt Σ α A q over Neumann faces, whatever the scheme does in between."""
    graph = dual(SIDED[name], BOUNDARIES["neumann"])
    dt = 0.5 * fourier_step(graph, 0.7)
    wanted = dt * 0.7 * float(graph.A[graph.interior :] @ graph.value)
    if scheme.name == "crank-nicolson-printed":
        wanted = -wanted
    assert abs(wanted) > 1e-4 * dt
    assert graph.V @ whole_step(scheme, graph, dt, 0.7).b == pytest.approx(wanted, rel=1e-12)


def test_what_leaves_through_dirichlet_walls_is_lost() -> None:
    graph = dual(MESHES["mixed"], Dirichlet(0.0))
    step = whole_step(BUILT_IN["euler"], graph, 0.5 * fourier_step(graph))
    assert graph.V @ step(np.ones(graph.cells)) < 0.99


LASTING = [scheme for scheme in CLAIMING if scheme.claims.stable_to]


@pytest.mark.parametrize("scheme", LASTING, ids=str)
def test_the_heat_does_not_drift_in_ten_thousand_steps(scheme: Scheme) -> None:
    graph = INSULATED["mixed"]
    limit = step_limit(scheme, graph)
    assert limit is not None
    dt = min(0.9 * limit.dt, 20 * fourier_step(graph))
    T = 1.0 + noise(graph.cells, 3)
    after = np.asarray(stepper(scheme, graph, dt).rollout(T, 10_000))
    heat = graph.V @ T
    assert abs(graph.V @ after - heat) <= 1e-12 * (graph.V @ np.abs(T))
    assert np.abs(after - heat / graph.V.sum()).max() <= 1e-9


@pytest.mark.parametrize("solver", ["direct", "amg", "cg"])
@pytest.mark.parametrize("walls", ["insulated", "neumann"])
def test_crank_nicolson_keeps_account_of_the_heat_whatever_the_solver_leaves(solver: str, walls: str) -> None:
    """T' − T is an exchange in differences plus what enters: an error in the solution of the system moves no heat."""
    graph = INSULATED["mixed"] if walls == "insulated" else dual(MESHES["mixed"], BOUNDARIES["neumann"])
    T, S = 1.0 + noise(graph.cells, 3), noise(graph.cells, 4)
    for steps in (1.0, 1e3, 1e7):
        dt = steps * fourier_step(graph)
        entering = dt * (float(graph.A[graph.interior :] @ graph.value) + graph.V @ S)
        step = stepper("crank-nicolson", graph, dt, source=S, solver=solver)
        after = np.asarray(step(T))
        # Every cell's change is a sum of at most five terms of the size of its largest.
        size = graph.V @ (np.abs(T) + np.abs(after - T) + dt * np.abs(S))
        assert abs(graph.V @ after - graph.V @ T - entering) <= 1e-14 * size


def test_a_very_long_step_of_an_insulated_body_keeps_its_heat() -> None:
    """The system is then nearly singular for constants, by as many digits as the step is long."""
    graph = INSULATED["mixed"]
    T = 0.5 + 0.1 * noise(graph.cells, 5)
    for long in (1e10, 1e12):
        after = np.asarray(stepper("crank-nicolson", graph, long * fourier_step(graph)).rollout(T, 20))
        assert graph.V @ after == pytest.approx(graph.V @ T, rel=1e-12)
        # T' = 2 T_θ − T with T_θ the mean, so that deviations change sign at every step. Those of T_θ are 1/long of
        # them, and float64 holds them beside a mean of one half to eps · long, in each of 20 steps.
        np.testing.assert_allclose(after, T, rtol=0, atol=20 * np.finfo(float).eps * long)
