"""Implicit steps by conjugate gradients with algebraic multigrid, on meshes that have coarser levels."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from scipy.sparse import csr_array, diags_array

from fluxforge.errors import InputError, NumericalError
from fluxforge.mesh import DualGraph, Neumann, dual, fourier_step, jittered
from fluxforge.scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import _build, operator, sides, stepper
from fluxforge.stepping._implicit import IterativeStepper, condition_bound
from fluxforge.stepping._solvers import MOST_COARSE_CELLS, Multigrid, conjugate_gradients
from strategies import BOUNDARIES, noise

CN = BUILT_IN["crank-nicolson"]
MESH = jittered(24, 0.3, seed=2)
GRAPHS = {name: dual(MESH, conditions) for name, conditions in {**BOUNDARIES, "insulated": Neumann()}.items()}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))


def system(graph: DualGraph, dt: float) -> csr_array:
    return csr_array(diags_array(graph.V) @ sides(operator(CN, graph, dt=dt))[0])


@every_graph
@pytest.mark.parametrize("fourier", [0.5, 100.0, 1e5])
def test_multigrid_agrees_with_the_direct_solver(graph: DualGraph, fourier: float) -> None:
    T, S = noise(graph.cells, 3), noise(graph.cells, 4)
    dt = fourier * fourier_step(graph)
    direct, amg = (stepper(CN, graph, dt, source=S, solver=solver) for solver in ("direct", "amg"))
    assert isinstance(amg, IterativeStepper)
    assert vars(amg.solver)["levels"]
    exact, after = (np.asarray(step.rollout(T, 3)) for step in (direct, amg))
    # A solve leaves ‖V r‖₂ ≤ 1e-13 ‖V b‖₂, b = T + θ·(sources and walls). The least eigenvalue of V·(the system) is at
    # least min V, so that T_θ is off by e, |e| ≤ 1e-13 ‖V b‖₂ / min V, and T' by (e − r)/θ, in each of three steps.
    right = np.linalg.norm(graph.V * (np.abs(exact).max() + np.abs(T) + 0.5 * np.abs(amg.constant)))
    assert np.abs(after - exact).max() <= 3 * 4 * 1e-13 * right / graph.V.min()


@pytest.mark.parametrize("fourier", [1.0, 1e3, 1e7, 1e12])
def test_multigrid_conserves_the_heat_of_an_insulated_body(fourier: float) -> None:
    graph = GRAPHS["insulated"]
    T = 1.0 + noise(graph.cells, 5)
    after = np.asarray(stepper(CN, graph, fourier * fourier_step(graph), solver="amg").rollout(T, 5))
    # Each face's flux is added to one cell and taken from another: a few ε of the field in each of five steps.
    assert abs(graph.V @ (after - T)) <= 5 * 10 * np.finfo(float).eps * (graph.V @ np.abs(T))
    # Exact steps do not increase Σ V T². What a solve leaves is bounded as above.
    left = 5 * 4 * 1e-13 * np.linalg.norm(graph.V * T) / graph.V.min()
    assert np.sqrt(graph.V @ after**2) <= np.sqrt(graph.V @ T**2) + left


class OneCycle:
    """A solver that leaves most digits of the solution wrong."""

    def __init__(self, method: Multigrid) -> None:
        self.A, self.method = method.A, method

    def solve(self, r: np.ndarray, *, within: float) -> np.ndarray:
        return self.method.cycle(r)


def test_a_poor_solution_of_the_system_moves_no_heat() -> None:
    graph = GRAPHS["insulated"]
    T = 1.0 + noise(graph.cells, 5)
    step = stepper(CN, graph, 100 * fourier_step(graph), solver="amg")
    assert isinstance(step, IterativeStepper)
    assert isinstance(step.solver, Multigrid)
    exact = np.asarray(step(T))
    poor = replace(step, solver=OneCycle(step.solver))
    with pytest.raises(NumericalError, match="the linear system of a step is not solved"):
        poor(T)
    after = np.asarray(replace(poor, tolerance=0.1)(T))
    assert np.abs(after - exact).max() > 1e-3
    assert abs(graph.V @ (after - T)) <= 10 * np.finfo(float).eps * (graph.V @ np.abs(T))


def test_the_cycle_is_symmetric_and_positive() -> None:
    graph = GRAPHS["both"]
    method = Multigrid(system(graph, 1e3 * fourier_step(graph)))
    assert method.coarsest.shape[0] <= MOST_COARSE_CELLS < graph.cells
    a, b = noise(graph.cells, 1), noise(graph.cells, 2)
    products = a @ method.cycle(b), b @ method.cycle(a)
    size = np.linalg.norm(a) * np.linalg.norm(method.cycle(b))
    assert abs(products[0] - products[1]) <= 100 * np.finfo(float).eps * size
    assert a @ method.cycle(a) > 0


class CountedMultigrid(Multigrid):
    """Counts the cycles from the finest level, one per iteration of conjugate gradients."""

    def __init__(self, A: csr_array) -> None:
        super().__init__(A)
        self.iterations = 0

    def cycle(self, r: np.ndarray, depth: int = 0) -> np.ndarray:
        self.iterations += depth == 0
        return super().cycle(r, depth)


class CountedDiagonal(CountedMultigrid):
    """Conjugate gradients preconditioned by the diagonal."""

    def cycle(self, r: np.ndarray, depth: int = 0) -> np.ndarray:
        self.iterations += 1
        return r / self.A.diagonal()


def test_multigrid_takes_few_iterations_where_the_diagonal_takes_many() -> None:
    graph = dual(jittered(60, 0.3, seed=2))
    A = system(graph, 1e4 * fourier_step(graph))
    amg, diagonal, b = CountedMultigrid(A), CountedDiagonal(A), noise(graph.cells, 6)
    for method in (amg, diagonal):
        x = method.solve(b, within=1e-10 * float(np.linalg.norm(b)))
        # The residual carried along and the true one part by ε·κ at most, with κ below 1e5 here.
        assert np.linalg.norm(b - A @ x) <= 2e-10 * np.linalg.norm(b)
    assert amg.iterations <= 40
    assert diagonal.iterations >= 5 * amg.iterations


def test_steps_repeat_and_leave_numpys_random_numbers_alone() -> None:
    graph = GRAPHS["both"]
    T, dt = noise(graph.cells, 7), 100 * fourier_step(graph)
    results = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # type: ignore[index, union-attr]  # noqa: NPY002
        results.append(np.asarray(stepper(CN, graph, dt, solver="amg").rollout(T, 2)))
        assert np.array_equal(np.random.get_state()[1], before)  # type: ignore[index]  # noqa: NPY002
    assert np.array_equal(*results)


def test_single_precision_asks_for_less() -> None:
    graph = GRAPHS["both"]
    T, dt = noise(graph.cells, 8), 100 * fourier_step(graph)
    exact = np.asarray(stepper(CN, graph, dt, solver="direct")(T))
    amg = stepper(CN, graph, dt, solver="amg", dtype="float32")
    assert isinstance(amg, IterativeStepper)
    # The bound of the first test, with 1e-6 in place of 1e-13.
    right = np.linalg.norm(graph.V * (np.abs(T) + 0.5 * np.abs(amg.constant)))
    assert 1e-12 < np.abs(np.asarray(amg(T)) - exact).max() <= 4e-6 * right / graph.V.min()


@pytest.mark.parametrize("scheme", ["corrected", "crank-nicolson-printed"])
def test_a_system_that_is_no_symmetric_m_matrix_is_refused(scheme: str) -> None:
    name = "theta" if scheme == "corrected" else scheme
    implicit = Scheme(name, BUILT_IN[scheme].stages, sp.Rational(1, 2))
    wanted = rf"'{name}' has no symmetric, diagonally dominant matrix on this mesh: use the direct solver"
    with pytest.raises(InputError, match=wanted):
        stepper(implicit, GRAPHS["both"], 1e-3, solver="amg")


def test_a_system_that_is_not_solved_is_a_numerical_error() -> None:
    """Sixth differences, of condition number about 400⁶: multigrid for second-order problems is of little help."""
    n = 400
    second = diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    b = noise(n, 9)
    with pytest.raises(NumericalError, match="not solved in 500 iterations"):
        Multigrid(csr_array(second @ second @ second)).solve(b, within=1e-10 * float(np.linalg.norm(b)))


def solve_diagonal(values: np.ndarray, b: np.ndarray, most: int) -> tuple[np.ndarray, bool]:
    return conjugate_gradients(
        lambda p: values * p, np.copy, b, is_solved=lambda r: bool(np.linalg.norm(r) <= 1e-12), most=most
    )


def test_what_the_last_allowed_iteration_solves_is_solved() -> None:
    """On a diagonal with two values, conjugate gradients take two iterations in exact arithmetic."""
    values, b = np.tile([1.0, 2.0], 5), noise(10, 9)
    x, solved = solve_diagonal(values, b, most=2)
    assert solved
    assert np.linalg.norm(values * x - b) <= 2e-12
    with pytest.raises(NumericalError, match="not solved in 1 iterations of conjugate gradients: use a shorter time"):
        solve_diagonal(values, b, most=1)


def test_on_a_negative_definite_matrix_conjugate_gradients_say_that_nothing_is_solved() -> None:
    x, solved = solve_diagonal(-np.ones(10), noise(10, 9), most=5)
    assert not solved
    assert (x == 0).all()


@every_graph
def test_the_condition_bound_holds(graph: DualGraph) -> None:
    small = dual(jittered(5, 0.3, seed=1)) if graph is GRAPHS["dirichlet"] else graph
    step = operator(CN, small, dt=50 * fourier_step(small))
    A = (diags_array(small.V) @ sides(step)[0]).toarray()
    half = 1 / np.sqrt(np.diag(A))
    values = np.linalg.eigvalsh(half[:, None] * A * half)
    assert values[-1] / values[0] <= condition_bound(step) <= 10 * values[-1] / values[0]


def test_auto_chooses_by_cells_device_and_length_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = GRAPHS["both"]
    short, long = (operator(CN, graph, dt=share * fourier_step(graph)) for share in (1.0, 1e4))
    assert _build.choose_solver(long, graph.V) == "direct"
    monkeypatch.setattr(_build, "DIRECT_MOST_CELLS", 100)
    assert (_build.choose_solver(short, graph.V), _build.choose_solver(long, graph.V)) == ("cg", "amg")
    assert isinstance(stepper(CN, graph, 1e4 * fourier_step(graph)), IterativeStepper)
    monkeypatch.setattr(_build.jax, "default_backend", lambda: "gpu")
    assert _build.choose_solver(long, graph.V) == "cg"
