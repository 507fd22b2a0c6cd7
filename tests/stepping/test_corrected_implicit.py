"""Implicit steps of the corrected flux: order in time, long steps, conservation, and solvers that agree."""

from typing import Literal

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse import csr_array, diags_array, eye_array

from fluxforge.errors import InputError, NumericalError
from fluxforge.mesh import DualGraph, Neumann, dual, jittered, reference_step
from fluxforge.scheme import find
from fluxforge.stepping import _build, generator, operator, sides, step_limit, stepper
from fluxforge.stepping._implicit import DirectStepper, IterativeStepper
from fluxforge.stepping._solvers import Krylov
from strategies import mixed, noise
from tetrahedra import six_tetrahedra

WALLS = {"left": 1.0, "right": 0.0, "bottom": Neumann(), "top": Neumann(0.2)}
K = ((2.0, 1.2), (1.2, 1.5))
CASES = {"conduction": {"k": "1 + 99*x**2", "rhoc": "1 + y"}, "anisotropic": {"K": K}}
every_case = pytest.mark.parametrize("equation", CASES)
SMALL = dual(jittered(5, 0.2, 1), WALLS)
LARGER = dual(mixed(24, 0.2, 1), WALLS)
INSULATED = dual(mixed(8, 0.2, 1), Neumann())


def fourier(equation: str, graph: DualGraph) -> float:
    return reference_step(find("euler", equation).equation, graph, CASES[equation])


@every_case
@pytest.mark.parametrize(("name", "order"), [("corrected-implicit", 1), ("corrected-crank-nicolson", 2)])
def test_the_order_in_time_against_the_matrix_exponential(name: str, order: int, equation: str) -> None:
    """dT/dt = G T + s: T(t) = T∞ + exp(t G)(T − T∞)."""
    system = generator(find("corrected", equation), SMALL, parameters=CASES[equation])
    S = noise(SMALL.cells, 2)
    rest = np.linalg.solve(system.M.toarray(), -(system.N @ S + system.b))
    # Smooth: what decays within a step has no order with the trapezoidal rule.
    start = rest + np.sin(np.pi * SMALL.x[:, 0]) * (1 + SMALL.x[:, 1])
    end = 0.2 / np.abs(np.linalg.eigvals(system.M.toarray())).min()
    exact = rest + expm(end * system.M.toarray()) @ (start - rest)
    errors = []
    for steps in (8, 16, 32, 64):
        step = stepper(name, SMALL, end / steps, equation=equation, parameters=CASES[equation], source=S)
        errors.append(np.abs(np.asarray(step.rollout(start, steps)) - exact).max())
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(rates[1:] - order) < 0.15).all()


@every_case
def test_a_step_solves_the_explicit_operator_at_the_new_time(equation: str) -> None:
    T, S, dt = noise(SMALL.cells, 3), noise(SMALL.cells, 4), 30 * fourier(equation, SMALL)
    system = generator(find("corrected", equation), SMALL, parameters=CASES[equation])
    step = stepper("corrected-implicit", SMALL, dt, equation=equation, parameters=CASES[equation], source=S)
    after = np.asarray(step(T))
    rate = system.M @ after + system.N @ S + system.b
    # The step adds Δt times a rate of terms that are Δt‖G‖ ≈ 1e2 times larger than their sum.
    assert np.abs(after - T - dt * rate).max() <= 1e-11 * np.abs(after).max()


@every_case
@pytest.mark.parametrize("name", ["corrected-implicit", "corrected-crank-nicolson"])
def test_long_steps_are_stable(name: str, equation: str) -> None:
    limit = step_limit(find(name, equation), SMALL, parameters=CASES[equation])
    assert limit is not None
    assert np.isinf(limit.dt)
    step = stepper(name, SMALL, 1e4 * fourier(equation, SMALL), equation=equation, parameters=CASES[equation])
    rest = np.asarray(step.rollout(np.zeros(SMALL.cells), 400))
    after = np.asarray(step.rollout(noise(SMALL.cells, 1), 400))
    assert np.abs(after).max() < 10.0
    if name == "corrected-implicit":
        # The slowest mode decays by 1/(1 + Δt |λ|), Δt |λ| > 100, in each of 400 steps.
        assert np.abs(after - rest).max() <= 1e-9


@every_case
def test_the_total_is_kept_behind_insulated_walls(equation: str) -> None:
    """Σ c V T changes by the rounding of Δt times the exchange coefficients."""
    dt, steps = 100 * fourier(equation, INSULATED), 10
    c = 1 + INSULATED.x[:, 1] if equation == "conduction" else np.ones(INSULATED.cells)
    T = noise(INSULATED.cells, 5)
    step = stepper("corrected-implicit", INSULATED, dt, equation=equation, parameters=CASES[equation])
    after = np.asarray(step.rollout(T, steps))
    rows = abs(operator(find("corrected", equation), INSULATED, dt=dt, parameters=CASES[equation]).M).sum(axis=1).max()
    weight = c * INSULATED.V
    tolerance = steps * 4 * np.finfo(float).eps * rows * (weight * np.abs(T)).sum()
    assert abs(weight @ after - weight @ T) <= tolerance
    assert tolerance < 1e-9 * (weight * np.abs(T)).sum()
    assert np.abs(after - T).max() > 0.1


@every_case
@pytest.mark.parametrize("method", ["bicgstab", "gmres"])
@pytest.mark.parametrize("length", [10.0, 1e4])
def test_iterations_agree_with_the_factors(method: str, length: float, equation: str) -> None:
    """x' − x of two solves with residuals r has A (x' − x) = r' − r; the step adds the exchange of that."""
    dt = length * fourier(equation, LARGER)
    T, S = noise(LARGER.cells, 6), noise(LARGER.cells, 7)
    options = {"equation": equation, "parameters": CASES[equation], "source": S}
    direct, iterated = (
        stepper("corrected-implicit", LARGER, dt, solver=solver, **options) for solver in ("direct", method)
    )
    assert isinstance(direct, DirectStepper)
    assert isinstance(iterated, IterativeStepper)
    assert isinstance(iterated.solver, Krylov)
    weight = iterated.volume
    left = sides(operator(find("corrected", equation), LARGER, dt=dt, parameters=CASES[equation]))
    A = diags_array(weight) @ (2 * np.eye(LARGER.cells) - left[1].toarray())
    right = np.linalg.norm(weight * (T + iterated.constant))
    # ‖A⁻¹‖ times twice the tolerance, and the exchange W⁻¹A − 1 of it: at most ‖W⁻¹A‖∞ + 1 times more.
    off = 2e-13 * right * np.linalg.norm(np.linalg.inv(A), 2)
    amplified = off * (1 + np.abs(A / weight[:, None]).sum(axis=1).max())
    assert np.abs(np.asarray(direct(T)) - np.asarray(iterated(T))).max() <= amplified
    assert amplified < 1e-3


def test_capacity_is_part_of_the_symmetric_system() -> None:
    """The two-point flux of conduction with c that varies is solved by conjugate gradients."""
    dt = 1e3 * fourier("conduction", LARGER)
    T = noise(LARGER.cells, 8)
    steps = [
        np.asarray(stepper("implicit", LARGER, dt, equation="conduction", parameters=CASES["conduction"], solver=s)(T))
        for s in ("direct", "amg", "cg", "bicgstab")
    ]
    for other in steps[1:]:
        assert np.abs(other - steps[0]).max() <= 1e-8 * np.abs(steps[0]).max()


def test_auto_takes_bicgstab_for_large_systems_that_are_not_symmetric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_build, "DIRECT_MOST_CELLS", 100)
    dt = 10 * fourier("conduction", LARGER)
    step = stepper("corrected-implicit", LARGER, dt, equation="conduction", parameters=CASES["conduction"])
    assert isinstance(step, IterativeStepper)
    assert isinstance(step.solver, Krylov)
    assert step.solver.method == "bicgstab"


@pytest.mark.parametrize("method", ["bicgstab", "gmres"])
def test_no_convergence_is_a_numerical_error(method: Literal["bicgstab", "gmres"]) -> None:
    """The residual of a cyclic shift stagnates in every Krylov space smaller than the whole space."""
    n = 400
    shift = csr_array(eye_array(n, k=1) + eye_array(n, k=1 - n))
    first = np.eye(1, n).ravel()
    with pytest.raises(NumericalError, match=f"is not solved in 1000 iterations of {method}: use the direct solver"):
        Krylov(shift, lambda r: r, method).solve(first, within=1e-10)


def test_conjugate_gradients_are_refused() -> None:
    with pytest.raises(
        InputError, match="no symmetric positive definite matrix on this mesh: use the direct solver, bicgstab or gmres"
    ):
        stepper("corrected-implicit", SMALL, 0.1, solver="cg")


def test_transport_alone_is_preconditioned_by_incomplete_factors() -> None:
    options = {"equation": "advection", "parameters": {"velocity": (1.0, 0.3)}}
    T = noise(LARGER.cells, 9)
    direct, iterated = (
        np.asarray(stepper("implicit", LARGER, 0.1, solver=solver, **options)(T)) for solver in ("direct", "bicgstab")
    )
    assert np.abs(direct - iterated).max() <= 1e-10 * np.abs(direct).max()


def test_a_step_in_space() -> None:
    graph = six_tetrahedra()
    T = noise(graph.cells, 1)
    system = generator(find("corrected", "conduction", dimension=3), graph)
    after = np.asarray(stepper("corrected-implicit", graph, 0.5, equation="conduction")(T))
    assert np.abs(after - T - 0.5 * (system.M @ after)).max() <= 1e-13 * np.abs(T).max() * np.abs(system.M).max()
