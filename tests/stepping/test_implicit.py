"""Implicit steps: the system that is solved, and two solvers that agree."""

import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp

from fluxforge.errors import FluxforgeError, InputError
from fluxforge.mesh import DualGraph, dual, fourier_step, jittered
from fluxforge.scheme import Claims, Scheme, SchemeBuilder
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import generator, operator, sides, stepper
from fluxforge.stepping._implicit import DirectStepper
from fluxforge.stepping._linear import ConjugateGradientStepper
from strategies import BOUNDARIES, MESHES, noise, renumbered, whole_step

CN = BUILT_IN["crank-nicolson"]
GRAPHS = {name: dual(MESHES["mixed"], conditions) for name, conditions in BOUNDARIES.items()}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))


def theta_scheme(theta: sp.Expr, stages: str = "euler") -> Scheme:
    return Scheme(f"theta {theta}", BUILT_IN[stages].stages, theta)


@every_graph
@pytest.mark.parametrize("theta", [sp.Rational(1, 2), sp.Integer(1), sp.Rational(1, 3)])
def test_a_step_solves_the_theta_rule(theta: sp.Expr, graph: DualGraph) -> None:
    """(T' − T)/Δt = (1 − θ) f(T) + θ f(T'), f = G T + r + S."""
    T, S = noise(graph.cells, 1), noise(graph.cells, 2)
    dt = 7.0 * fourier_step(graph, 1.4)
    after = np.asarray(stepper(theta_scheme(theta), graph, dt, diffusivity=1.4, source=S)(T))
    system = generator(BUILT_IN["euler"], graph, parameters={"alpha": 1.4})
    rate = [system.M @ field + system.b + S for field in (T, after)]
    t = float(theta)
    assert np.abs((after - T) - dt * ((1 - t) * rate[0] + t * rate[1])).max() <= 1e-12 * np.abs(after).max()


def test_theta_zero_is_explicit_and_its_sides_are_too() -> None:
    graph = GRAPHS["both"]
    left, right = sides(operator(BUILT_IN["euler"], graph, dt=0.1))
    assert np.array_equal(left.toarray(), np.eye(graph.cells))
    assert np.allclose(right.toarray(), operator(BUILT_IN["euler"], graph, dt=0.1).M.toarray(), rtol=1e-13)


@every_graph
@pytest.mark.parametrize("fourier", [0.5, 50.0])
def test_direct_and_conjugate_gradients_agree(graph: DualGraph, fourier: float) -> None:
    T, S = noise(graph.cells, 3), noise(graph.cells, 4)
    dt = fourier * fourier_step(graph)
    direct, cg = (stepper(CN, graph, dt, source=S, solver=solver) for solver in ("direct", "cg"))
    assert isinstance(direct, DirectStepper)
    assert isinstance(cg, ConjugateGradientStepper)
    exact = np.asarray(direct.rollout(T, 5))
    assert np.abs(np.asarray(cg.rollout(T, 5)) - exact).max() <= 1e-10 * np.abs(exact).max()
    once = whole_step(CN, graph, dt)(T, S)
    assert np.abs(np.asarray(direct(T)) - once).max() <= 1e-12 * np.abs(once).max()


def test_conjugate_gradients_in_single_precision() -> None:
    graph = GRAPHS["both"]
    T = noise(graph.cells, 5)
    dt = 5 * fourier_step(graph)
    after = stepper(CN, graph, dt, solver="cg", dtype="float32").rollout(T, 1)
    assert after.dtype == jnp.float32
    assert np.abs(np.asarray(after) - whole_step(CN, graph, dt)(T)).max() <= 1e-4


def test_conjugate_gradients_on_a_shuffled_mesh_of_thousands() -> None:
    graph = dual(renumbered(jittered(46, 0.3, seed=1), seed=1).mesh)
    T, dt = noise(graph.cells, 6), 10 * fourier_step(graph)
    cg, direct = (stepper(CN, graph, dt, source=1.0, solver=solver) for solver in ("cg", "direct"))
    assert isinstance(cg, ConjugateGradientStepper)
    assert cg.order is not None
    assert np.abs(np.asarray(cg.rollout(T, 1)) - np.asarray(direct(T))).max() <= 1e-10
    # A preconditioner in another order would still converge, and take its time.
    left, _ = sides(operator(CN, graph, dt=dt))
    assert np.allclose(np.asarray(cg.leave(cg.diagonal)), graph.V * left.diagonal(), rtol=1e-14)


def test_a_system_that_is_not_symmetric_is_refused_by_conjugate_gradients() -> None:
    graph = dual(jittered(4, 0.3, seed=1))
    scheme = theta_scheme(sp.Rational(1, 2), "corrected")
    with pytest.raises(
        InputError, match=r"'theta 1/2' has no symmetric positive definite matrix on this mesh: use the direct solver"
    ):
        stepper(scheme, graph, 1e-3, solver="cg")
    T = noise(graph.cells)
    step = stepper(scheme, graph, 1e-3, solver="direct")
    assert np.abs(np.asarray(step(T)) - whole_step(scheme, graph, 1e-3)(T)).max() <= 1e-12


@pytest.mark.parametrize("share", [0.5, 1.2, 1.9, 2.5, 40.0])
def test_an_indefinite_system_is_refused_or_solved(share: float) -> None:
    """The printed formula's matrix I + ½ΔtL loses its positivity as Δt grows."""
    graph = GRAPHS["both"]
    scheme = BUILT_IN["crank-nicolson-printed"]
    T, dt = noise(graph.cells, 7), share * fourier_step(graph)
    exact = whole_step(scheme, graph, dt)(T)
    try:
        after = np.asarray(stepper(scheme, graph, dt, solver="cg").rollout(T, 1))
    except FluxforgeError:
        return
    assert np.abs(after - exact).max() <= 1e-8 * np.abs(exact).max()


def test_an_implicit_scheme_that_is_not_linear_is_refused() -> None:
    stage = SchemeBuilder().stage({"z": "T_N*T_P"}, {"T_new": "T + dt*z"})
    scheme = stage.build("square", summary="", claims=Claims(), theta=sp.Rational(1, 2))
    with pytest.raises(InputError, match="'square' is implicit and not linear, and only linear systems are solved"):
        stepper(scheme, GRAPHS["both"], 0.1)


def test_small_systems_are_solved_directly_unless_told_otherwise() -> None:
    graph = GRAPHS["dirichlet"]
    assert isinstance(stepper(CN, graph, 0.1), DirectStepper)
    assert isinstance(stepper(CN, graph, 0.1, solver="cg"), ConjugateGradientStepper)


def test_explicit_schemes_ignore_the_solver() -> None:
    graph = GRAPHS["dirichlet"]
    T, dt = noise(graph.cells), 0.5 * fourier_step(graph)
    after = stepper("euler", graph, dt, solver="cg").rollout(T, 1)
    assert np.abs(np.asarray(after) - whole_step(BUILT_IN["euler"], graph, dt)(T)).max() <= 1e-13
