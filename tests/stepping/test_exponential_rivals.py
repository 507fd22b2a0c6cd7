"""Krylov spaces, Chebyshev series and implicit steps of order two, against SciPy's matrix exponential."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse import csr_array

from fluxforge.errors import NumericalError
from fluxforge.mesh import DualGraph, Robin, dual, fourier_step, jittered
from fluxforge.scheme import find
from fluxforge.stepping import ImplicitStep, chebyshev_exponential, krylov_exponential, operator


@pytest.fixture(scope="module")
def graph() -> DualGraph:
    return dual(jittered(8), {"left": Robin(h=1.5, outside=0.0)})


@pytest.fixture(scope="module")
def L(graph: DualGraph) -> np.ndarray:
    dt = fourier_step(graph)
    return np.asarray(operator(find("euler"), graph, dt=dt).M.toarray() - np.eye(graph.cells)) / dt


def test_krylov_spaces_converge_to_the_matrix_exponential(graph: DualGraph, L: np.ndarray) -> None:
    A = 4.0 * fourier_step(graph) * L
    T = np.random.default_rng(0).normal(size=graph.cells)
    exact = expm(A) @ T
    errors = [np.abs(krylov_exponential(csr_array(A), graph.V, T, m) - exact).max() for m in (2, 4, 8, 16, 30)]
    assert errors[2] < 1e-3 < errors[1] < errors[0]
    assert errors[3] < 1e-9
    # Round-off of exponentials of eigenvalues up to eight, of a field of size three.
    assert errors[4] < 1e-13
    assert (krylov_exponential(csr_array(A), graph.V, np.zeros_like(T), 4) == 0).all()


def test_a_space_that_the_operator_does_not_leave_gives_the_exact_answer(graph: DualGraph, L: np.ndarray) -> None:
    root = np.sqrt(graph.V)
    values, vectors = np.linalg.eigh(0.5 * ((M := root[:, None] * L / root) + M.T))
    T = vectors[:, -1] / root
    after = krylov_exponential(csr_array(0.01 * L), graph.V, T, 6)
    assert np.abs(after - np.exp(0.01 * values[-1]) * T).max() < 1e-12 * np.abs(T).max()


def test_a_chebyshev_series_is_applied_with_as_many_products_as_its_degree(graph: DualGraph, L: np.ndarray) -> None:
    A = 4.0 * fourier_step(graph) * L
    T = np.random.default_rng(1).normal(size=graph.cells)
    series = chebyshev_exponential(24, 8.0)
    after = series.apply(csr_array(A), T)
    assert np.abs(after - expm(A) @ T).max() < 1e-12
    values, vectors = np.linalg.eig(A)
    low = chebyshev_exponential(3, 8.0)
    wanted = (vectors * low.value(values.real)) @ np.linalg.solve(vectors, T.astype(complex))
    assert np.abs(low.apply(csr_array(A), T) - wanted.real).max() < 1e-9
    assert series.degree == 24


@pytest.mark.parametrize("method", ["crank-nicolson", "tr-bdf2"])
def test_implicit_steps_are_of_second_order(graph: DualGraph, L: np.ndarray, method: str) -> None:
    end = 40.0 * fourier_step(graph)
    T = np.sin(np.pi * graph.x[:, 0]) * np.sin(np.pi * graph.x[:, 1])
    exact, errors = expm(end * L) @ T, []
    for steps in (16, 32, 64, 128):
        step, u = ImplicitStep(method, csr_array(L * end / steps), graph.V, tolerance=1e-12), T
        for _ in range(steps):
            u = step(u)
        errors.append(np.abs(u - exact).max())
        assert step.applications >= 2 * steps
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.abs(orders - 2.0).max() < 0.05


def test_tr_bdf2_damps_what_crank_nicolson_keeps(graph: DualGraph, L: np.ndarray) -> None:
    """A step so long that fast modes are multiplied by about −1 and by about 0."""
    A = csr_array(1e4 * fourier_step(graph) * L)
    T = np.random.default_rng(2).normal(size=graph.cells)
    kept, damped = (np.abs(ImplicitStep(m, A, graph.V, 1e-10)(T)).max() for m in ("crank-nicolson", "tr-bdf2"))
    assert damped < 0.05 * kept


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("method", ["crank-nicolson", "tr-bdf2"])
@pytest.mark.parametrize("value", [np.finfo(float).max, np.inf, np.nan])
def test_an_implicit_step_of_a_field_that_overflows_is_no_step(
    graph: DualGraph, L: np.ndarray, method: str, value: float
) -> None:
    T = np.ones(graph.cells)
    T[3] = value
    with pytest.raises(NumericalError, match="right-hand side of a linear system is not finite"):
        ImplicitStep(method, csr_array(fourier_step(graph) * L), graph.V)(T)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("method", ["crank-nicolson", "tr-bdf2"])
def test_an_implicit_step_of_a_growing_field_is_no_step(graph: DualGraph, L: np.ndarray, method: str) -> None:
    """Every mode grows: V (1 − θA) is negative definite, on which conjugate gradients end at once."""
    A = csr_array(0.1 * fourier_step(graph) * L + 40.0 * np.eye(graph.cells))
    T = np.random.default_rng(3).random(graph.cells)
    with pytest.raises(
        NumericalError, match=r"to a relative residual of 1e-05: .* not positive definite, .* a shorter"
    ):
        ImplicitStep(method, A, graph.V)(T)
