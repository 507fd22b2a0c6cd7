"""Residuals against the steps they are the residuals of, and their orders against the exact flow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from fluxforge import recipe
from fluxforge.data import Problem, linearise, problem, reference_number
from fluxforge.graph import pad_graph, pad_to_size, padded_size
from fluxforge.loss import Defect, hermite_residual, supervised_defect, theta_residual
from fluxforge.loss._loss import residual
from fluxforge.mesh import dual, fourier_step
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import generator
from strategies import BOUNDARIES, MESHES, noise

GRAPH = dual(MESHES["mixed"], BOUNDARIES["both"])
ALPHA = 1.7
FLOW = generator(BUILT_IN["euler"], GRAPH, parameters={"alpha": ALPHA})
L, R = FLOW.M.toarray(), FLOW.b
LONGEST = fourier_step(GRAPH, ALPHA)
T, S = noise(GRAPH.cells, 1), noise(GRAPH.cells, 2)
AROUND = pad_graph(GRAPH)


def posed(dt: float) -> Problem:
    alpha = {"alpha": jnp.asarray(ALPHA)}
    return problem(AROUND, jnp.asarray(T), jnp.asarray(S), dt=jnp.asarray(dt), parameters=alpha)


def defect(of: Defect, dt: float, new: np.ndarray) -> np.ndarray:
    return np.asarray(of(posed(dt), jnp.asarray(new)))


def exact(dt: float) -> np.ndarray:
    """T(Δt) of dT/dt = L T + r + S, by the exponential of the system with one more row."""
    n = GRAPH.cells
    whole = np.zeros((n + 1, n + 1))
    whole[:n, :n], whole[:n, n] = L, R + S
    return expm(dt * whole)[:n] @ np.append(T, 1.0)


def test_the_rate_is_the_operator_with_its_boundary_data_and_its_slope_is_without() -> None:
    posed_problem, field = posed(0.1), jnp.asarray(T)
    assert np.asarray(posed_problem.rate(field)) == pytest.approx(L @ T + R + S, rel=1e-12)
    assert np.asarray(linearise(posed_problem.rate, jnp.asarray(S))(field)) == pytest.approx(L @ T, rel=1e-12)


@pytest.mark.parametrize("theta", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("fourier", [0.3, 5.0])
def test_the_step_of_the_theta_scheme_has_no_theta_residual(theta: float, fourier: float) -> None:
    """Sources, Dirichlet and Neumann data included, and steps far beyond what an explicit scheme could take."""
    dt = fourier * LONGEST
    right = T + dt * ((1 - theta) * (L @ T) + R + S)
    new = np.linalg.solve(np.eye(GRAPH.cells) - theta * dt * L, right)
    remainder = defect(theta_residual(theta), dt, new)
    assert np.abs(remainder).max() <= 1e-12 * np.abs(L @ T).max()
    assert np.abs(defect(theta_residual(theta + (0.1 if theta < 1 else -0.1)), dt, new)).max() > 1e-3


@pytest.mark.parametrize(
    ("of", "order"),
    [
        (theta_residual(0.0), 1),
        (theta_residual(1.0), 1),
        (theta_residual(0.5), 2),
        (hermite_residual(), 4),
    ],
)
def test_the_exact_flow_has_a_residual_of_the_claimed_order(of: Defect, order: int) -> None:
    steps = 0.4 * LONGEST * 0.5 ** np.arange(5)
    sizes = [np.abs(defect(of, dt, exact(dt))).max() for dt in steps]
    rates = np.diff(np.log(sizes)) / np.diff(np.log(steps))
    assert rates[-1] == pytest.approx(order, abs=0.05)
    assert rates[-2] == pytest.approx(order, abs=0.1)


def test_the_hermite_residual_has_the_constant_of_its_formula() -> None:
    """(T' − T)/Δt − … = Δt⁴/720 L⁴ f + O(Δt⁵)."""
    dt = 0.02 * LONGEST
    leading = dt**4 / 720 * np.linalg.matrix_power(L, 4) @ (L @ T + R + S)
    remainder = defect(hermite_residual(), dt, exact(dt))
    assert np.abs(remainder - leading).max() <= 0.06 * np.abs(leading).max()


@pytest.mark.parametrize("per_step", [False, True])
def test_the_answer_has_no_supervised_defect(per_step: bool) -> None:
    of = supervised_defect(recipe.Supervised(per_step=per_step))
    dt = 0.3 * LONGEST
    answer = T + dt * (L @ T + R + S)
    assert np.abs(defect(of, dt, answer)).max() <= (1e-12 if per_step else 1e-14) * np.abs(L @ T).max()
    off = noise(GRAPH.cells, 5)
    assert defect(of, dt, answer + off) == pytest.approx(off / dt if per_step else off, rel=1e-9)


def test_the_supervised_defect_per_step_is_the_residual_of_theta_zero() -> None:
    new = noise(GRAPH.cells, 6)
    one, other = supervised_defect(recipe.Supervised(per_step=True)), theta_residual(0.0)
    assert defect(one, 0.01, new) == pytest.approx(defect(other, 0.01, new), rel=1e-10)


def test_the_fourier_number_is_the_step_over_the_fourier_step() -> None:
    assert float(reference_number(posed(0.3 * LONGEST))) == pytest.approx(0.3, rel=1e-13)


def test_the_fourier_number_does_not_see_padding() -> None:
    to = padded_size(AROUND)._replace(cells=40, ghosts=30, slots={"edge": 6})
    numbers = {"dt": jnp.asarray(0.3 * LONGEST), "parameters": {"alpha": jnp.asarray(ALPHA)}}
    number = reference_number(problem(pad_to_size(AROUND, to), jnp.zeros(40), jnp.zeros(40), **numbers))
    assert float(number) == pytest.approx(0.3, rel=1e-13)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("kind", ["theta", "hermite"])
def test_a_power_of_the_fourier_number_divides_the_residual(kind: str, power: float) -> None:
    new, dt = noise(GRAPH.cells, 6), 0.3 * LONGEST
    theta = 0.75 if kind == "theta" else 0.5
    spec = recipe.Residual(kind=kind, theta=theta, fourier_power=power)  # type: ignore[arg-type]
    plain = hermite_residual() if kind == "hermite" else theta_residual(theta)
    assert defect(residual(spec), dt, new) == pytest.approx(defect(plain, dt, new) / 0.3**power, rel=1e-12)


def test_residuals_can_be_differentiated_and_compiled() -> None:
    """The slope of Σ r² with respect to T' is 2 Jᵀ r with J = I/Δt − L/2 − …, checked along a line."""
    dt, new, along = 0.3 * LONGEST, noise(GRAPH.cells, 7), noise(GRAPH.cells, 8)
    total = jax.jit(lambda new: jnp.square(hermite_residual()(posed(dt), new)).sum())
    slope = jax.grad(total)(jnp.asarray(new))
    one = np.eye(GRAPH.cells)
    J = one / dt - 0.5 * L + dt / 12 * L @ L
    r = defect(hermite_residual(), dt, new)
    assert float(slope @ along) == pytest.approx(2 * (J @ along) @ r, rel=1e-10)
