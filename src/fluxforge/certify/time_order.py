"""Order in time: against the exact solution of the scheme's own semi-discrete system, exactly and observed."""

import math

import numpy as np

from fluxforge.certify._evidence import Line, Verdict
from fluxforge.certify._families import study_graph
from fluxforge.certify._problems import differentiate_solution, with_mixed_walls
from fluxforge.certify._studies import Rates, TimeStudy, describe_rates, format_order
from fluxforge.certify._systems import exact_solution, march, study_step
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings
from fluxforge.scheme._linear import HIGHEST_ORDER, one_cell_order
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._assemble import generator, operator
from fluxforge.stepping._implicit import sides

# Values of Δt, each half of the one before; the finest may reach round-off.
LEVELS = 7
# Taylor coefficients come from this many points on a circle of half the Fourier step. Aliasing is below 0.41^POINTS
# = 4e-13 of the first pole's (Crank-Nicolson, |z| = 2), round-off below eps·k!/0.8^k = 1e-13 for k ≤ 6.
POINTS = 32
SAME = 1e-9


def measure_time_order(
    scheme: Scheme, graph: DualGraph | None = None, *, parameters: Settings | None = None
) -> TimeStudy:
    """Halve Δt from a quarter of the Fourier step, at least four times, and compare at t = 2 Δt_Fourier."""
    graph = study_graph() if graph is None else graph
    fourier = study_step(scheme, graph, parameters)
    rng = np.random.default_rng(0)
    T0, S = rng.standard_normal(graph.cells), rng.standard_normal(graph.cells)
    zero = np.zeros(graph.cells)
    system = generator(scheme, graph, parameters=parameters)
    runs = {"free": (T0, zero), "driven": (zero, S)}
    errors: dict[str, list[float]] = {name: [] for name in runs}
    steps = [8 * 2**k for k in range(LEVELS)]
    for count in steps:
        dt = 2 * fourier / count
        step = operator(scheme, graph, dt=dt, parameters=parameters)
        for name, (start, source) in runs.items():
            exact = exact_solution(system, start, source, 2 * fourier)
            apart = march(step, start, source, count) - exact
            errors[name].append(float(np.abs(apart).max() / max(np.abs(exact).max(), 1e-300)))
    sizes = tuple(1.0 / count for count in steps)
    free, driven = (_above_round_off(Rates(sizes, tuple(errors[name]))) for name in runs)
    series = measure_series_order(scheme, parameters=parameters, dimension=graph.dimension)
    return TimeStudy(free, driven, one_cell_order(scheme), series)


def measure_series_order(scheme: Scheme, *, parameters: Settings | None = None, dimension: int = 2) -> int | None:
    """How many Taylor coefficients in Δt of T' = M T + N S + b are those of the exact solution, up to 6.

    M_k = G^k/k!, N_k = G^(k−1)s/k! and b_k = G^(k−1)r/k!, the coefficients from complex steps around a circle; on an
    irregular mesh with Dirichlet and Neumann walls, compared to 1e-9 of the largest entry. None of a step that is not
    analytic in Δt, as with √Δt or log Δt in a coefficient: it has no such series.
    """
    graph = with_mixed_walls(study_graph(dimension), differentiate_solution("1 + 2*x - 3*y + x*y", dimension).gradient)
    system = generator(scheme, graph, parameters=parameters)
    S = np.random.default_rng(0).standard_normal(graph.cells)
    longest = 0.5 * study_step(scheme, graph, parameters)
    # Poles of implicit methods may lie inside the first circle. Smaller ones lose digits of the high coefficients.
    radii = (longest, longest / 2, longest / 4)
    circles = ((radius, _taylor(scheme, graph, S, radius, parameters)) for radius in radii)
    radius, found = next(((radius, each) for radius, each in circles if each is not None), (longest, None))
    if found is None:
        return None
    G = system.M.toarray() * radius
    power = np.eye(graph.cells)
    columns = np.stack([system.N @ S, system.b], axis=1) * radius
    for k in range(1, HIGHEST_ORDER + 1):
        wanted = np.hstack([power @ G, power @ columns]) / math.factorial(k)
        blocks = (slice(0, graph.cells), slice(graph.cells, -1), slice(-1, None))
        for block in blocks:
            apart = np.abs(found[k][:, block] - wanted[:, block]).max()
            if not apart <= SAME * max(np.abs(wanted[:, block]).max(), np.abs(found[k][:, block]).max(), 1e-30):
                return k - 1
        power = power @ G
    return HIGHEST_ORDER


def _taylor(
    scheme: Scheme, graph: DualGraph, S: np.ndarray, radius: float, parameters: Settings | None
) -> np.ndarray | None:
    """The coefficients of (Δt/radius)^k of the columns M, N S and b, by the discrete Fourier transform.

    None where the one of k = 0 is not that of a step of Δt = 0, which changes nothing: then the circle is around a pole
    or across a cut.
    """
    values = []
    # The values at conjugate Δt are conjugate: half the circle is enough.
    for k in range(POINTS // 2 + 1):
        step = operator(scheme, graph, dt=radius * np.exp(2j * np.pi * k / POINTS), parameters=parameters)
        columns = np.stack([step.N @ S, step.b], axis=1)
        left, right = (side.toarray() for side in sides(step))
        both = np.hstack([right, columns])
        values.append(both if step.theta == 0 else np.linalg.solve(left, both))
    found = np.fft.hfft(np.array(values), n=POINTS, axis=0) / POINTS
    start = np.eye(graph.cells, graph.cells + 2)
    return found[: HIGHEST_ORDER + 1] if np.abs(found[0] - start).max() <= SAME else None


def _above_round_off(rates: Rates) -> Rates:
    """Drop the finest levels that round-off reached, as long as four remain."""
    keep = len(rates.errors)
    while keep > 4 and rates.errors[keep - 1] < 1e-12 and not rates.exact:
        keep -= 1
    return Rates(rates.sizes[:keep], rates.errors[:keep])


def time_line(found: TimeStudy) -> Line:
    """The order in time."""
    evidence = f"free run {describe_rates(found.free)}; driven run {describe_rates(found.driven)}"
    exact = found.exact_order
    if exact is not None:
        evidence = f"Taylor coefficients of a step agree with the exact solution's up to Δt^{exact}; {evidence}"
        if found.observed is not None and abs(found.observed - exact) > 0.1:
            evidence += f"; at these Δt it looks like {found.observed:.2f}"
    verdict = Verdict.MEASURED if found.order is not None else Verdict.FAILS
    method = "R(z) against e^z exactly; Taylor coefficients on a mesh; runs against the matrix exponential of its own G"
    return Line(f"order in time {format_order(found.order)}", verdict, evidence, method)
