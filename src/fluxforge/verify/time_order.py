"""Observed order in time: against the exact solution of the scheme's own semi-discrete system."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from fluxforge.mesh import Dirichlet, DualGraph, dual, fourier_step, jittered
from fluxforge.scheme import Scheme
from fluxforge.simulate import Operator, generator, operator, sides
from fluxforge.verify._rates import Rates

LEVELS = 7


@dataclass(frozen=True)
class TimeStudy:
    """Errors at a fixed time for a free run (T₀, S = 0) and a driven one (T₀ = 0, S non-uniform).

    They are relative to the solution. `order` is the smaller of the two; a run that is exact bounds nothing.
    """

    free: Rates
    driven: Rates

    @property
    def order(self) -> float | None:
        """The observed order, None where a run has none and is not exact."""
        runs = [run for run in (self.free, self.driven) if not run.exact]
        orders = [run.order for run in runs]
        found = [order for order in orders if order is not None]
        return min(found) if found and len(found) == len(orders) else None


def study_graph() -> DualGraph:
    """A small irregular mesh with non-zero boundary data: rough enough that no symmetry hides a term."""
    return dual(jittered(5, 0.2, 3), Dirichlet("1 + x*y"))


def time_order(scheme: Scheme, graph: DualGraph | None = None, *, diffusivity: float = 1.0) -> TimeStudy:
    """Halve Δt from a quarter of the Fourier step, at least four times, and compare at t = 2 Δt_Fourier."""
    graph = study_graph() if graph is None else graph
    fourier = fourier_step(graph, diffusivity)
    rng = np.random.default_rng(0)
    T0, S = rng.standard_normal(graph.cells), rng.standard_normal(graph.cells)
    zero = np.zeros(graph.cells)
    system = generator(scheme, graph, diffusivity=diffusivity)
    runs = {"free": (T0, zero), "driven": (zero, S)}
    errors: dict[str, list[float]] = {name: [] for name in runs}
    steps = [8 * 2**k for k in range(LEVELS)]
    for count in steps:
        dt = 2 * fourier / count
        step = operator(scheme, graph, dt=dt, diffusivity=diffusivity)
        for name, (start, source) in runs.items():
            exact = exact_solution(system, start, source, 2 * fourier)
            apart = march(step, start, source, count) - exact
            errors[name].append(float(np.abs(apart).max() / max(np.abs(exact).max(), 1e-300)))
    sizes = tuple(1.0 / count for count in steps)
    return TimeStudy(*(_above_round_off(Rates(sizes, tuple(errors[name]))) for name in runs))


def _above_round_off(rates: Rates) -> Rates:
    """Drop the finest levels that round-off reached, as long as four remain."""
    keep = len(rates.errors)
    while keep > 4 and rates.errors[keep - 1] < 1e-12 and not rates.exact:
        keep -= 1
    return Rates(rates.sizes[:keep], rates.errors[:keep])


def exact_solution(system: Operator, T0: np.ndarray, S: np.ndarray, t: float) -> np.ndarray:
    """T(t) of dT/dt = G T + s S + r, by the exponential of the system with its constant as one more unknown."""
    n = len(T0)
    augmented = np.zeros((n + 1, n + 1))
    augmented[:n, :n] = system.M.toarray()
    augmented[:n, n] = system.N @ S + system.b
    return np.asarray((expm(t * augmented) @ np.append(T0, 1.0))[:n])


def march(step: Operator, T: np.ndarray, S: np.ndarray, count: int) -> np.ndarray:
    """Many steps of an assembled scheme."""
    constant = step.N @ S + step.b
    if step.theta == 0:
        for _ in range(count):
            T = step.M @ T + constant
        return T
    left, right = sides(step)
    factors = splu(csc_array(left))
    for _ in range(count):
        T = factors.solve(right @ T + constant)
    return T
