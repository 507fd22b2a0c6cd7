"""Equations that are not linear: the rate of change over a short step, compared with the equation's."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fluxforge.certify._evidence import FALLS, Line, verdict_of
from fluxforge.certify._families import Levels
from fluxforge.certify._problems import problems_of
from fluxforge.errors import NumericalError
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings, reference_step
from fluxforge.scheme._document import find
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._stepper import general_stepper

# Steps of this part of the reference step: (T' − T)/Δt at Δt and Δt/2 extrapolate to 0 with an error of the order of
# its square, 1e-10, and of round-off, 2ε/SHORT = 1e-10 of T over the reference step.
SHORT = 1e-5
SAME_RATE = 1e-7
# On lattices of up to 32 cells a side the error of the discretisation hides one of a per cent. Other consistent fluxes,
# upwind or corrected ones, differ by more than this on an irregular mesh: a smaller difference is a wrong coefficient.
ANOTHER_FLUX = 0.02


@dataclass(frozen=True)
class Rate:
    """How far ∂T'/∂Δt at Δt = 0 is from the equation's own two-point flux and reaction, the worst of several states.

    `apart` is relative to the larger of the rate and the state over a reference step. Of another flux, `left` is what
    remains of ∂T'/∂Δt on finer and finer `lattice`s where T is smooth and the source makes it steady, relative to the
    source: it has to fall.
    """

    apart: float
    left: tuple[float, ...] = ()
    lattice: str = "squares"

    @property
    def plain(self) -> bool:
        """Whether it is that of the equation's own two-point flux, as far as short steps can tell."""
        return self.apart <= SAME_RATE

    @property
    def falls(self) -> bool:
        """Whether what remains falls with the size of the cells."""
        return len(self.left) > 1 and all(after <= FALLS * before for before, after in pairwise(self.left))

    @property
    def holds(self) -> bool:
        """Whether it is the equation's: with its own flux, or with another one that is consistent."""
        return self.plain or (self.falls and self.apart > ANOTHER_FLUX)


def rate_of_change(scheme: Scheme, graph: DualGraph, *, parameters: Settings) -> Rate:
    """Compare with Euler's scheme for the same equation, from a state in (0, 1), one of both signs and a constant one.

    Raises NumericalError where no state gives finite rates.
    """
    rng = np.random.default_rng(0)
    states = (rng.random(graph.cells), rng.standard_normal(graph.cells), np.full(graph.cells, 0.3))
    source = rng.standard_normal(graph.cells)
    worst = [
        apart for T in states if np.isfinite(apart := _apart(scheme, graph, T=T, source=source, parameters=parameters))
    ]
    if not worst:
        raise NumericalError("the equation has no finite rate of change on any of the states tried")
    if max(worst) <= SAME_RATE:
        return Rate(max(worst))
    lattice = "cubes" if graph.dimension == 3 else "squares"
    return Rate(max(worst), remaining_rates(scheme, lattice), lattice)


def remaining_rates(scheme: Scheme, lattice: str) -> tuple[float, ...]:
    """|∂T'/∂Δt| of a smooth steady solution away from the walls, relative to its source, on finer and finer lattices.

    Parameters vary where they may. A quantile, not the maximum: limited fluxes are of lower order in single cells.
    """
    left = []
    problem = problems_of(scheme.equation, 3 if lattice == "cubes" else 2)[-1]
    problem = replace(problem, mixed=False)
    for n in (5, 10) if lattice == "cubes" else (8, 16, 32):
        graph = problem.graph(Levels(lattice, (n,)).refine_to(n))
        T, S, settings = problem.solution(graph), problem.source(graph), problem.settings(graph.dimension)
        dt = SHORT * reference_step(scheme.equation, graph, settings, T)
        off = np.abs(_slope(scheme, graph, T=T, source=S, dt=dt, parameters=settings))
        inside = (np.abs(graph.x - 0.5) < 0.31).all(axis=1)
        left.append(float(np.quantile(off[inside], 0.9) / np.abs(S).max()))
    return tuple(left)


def _apart(scheme: Scheme, graph: DualGraph, *, T: np.ndarray, source: np.ndarray, parameters: Settings) -> float:
    unit = reference_step(scheme.equation, graph, parameters, T)
    # An equation whose fields only grow has no reference step; then the unit of time is used.
    unit = unit if np.isfinite(unit) else 1.0
    own, wanted = (
        _slope(each, graph, T=T, source=source, dt=SHORT * unit, parameters=parameters)
        for each in (scheme, find("euler", scheme.equation))
    )
    size = max(np.abs(wanted).max(), np.abs(own).max(), np.abs(T).max() / unit)
    return float(np.abs(own - wanted).max() / size)


def _slope(
    scheme: Scheme, graph: DualGraph, *, T: np.ndarray, source: np.ndarray, dt: float, parameters: Settings
) -> np.ndarray:
    """(T' − T)/Δt extrapolated from Δt and Δt/2 to 0."""
    found = []
    for step in (dt, dt / 2):
        stepper = general_stepper(scheme, graph, dt=step, parameters=parameters, source=source, dtype="float64")
        found.append((np.asarray(stepper(T)) - T) / step)
    return np.asarray(2.0 * found[1] - found[0])


def rate_line(found: Rate) -> Line:
    """Whether a short step of a scheme that is not linear does what the equation says."""
    evidence = f"∂T'/∂Δt at Δt = 0 differs from the equation's own flux, reaction and source by {found.apart:.1e}"
    method = "steps of 1e-5 and 0.5e-5 of the reference step, extrapolated, from three states"
    if found.left:
        falls = "falls" if found.falls else "does not fall"
        shares = " ".join(f"{share:.2e}" for share in found.left)
        evidence = f"another flux than the equation's two-point one; what it leaves of a smooth steady field {falls}"
        evidence += f" with the size of the {found.lattice}: {shares} of the source"
        method = "short steps from a manufactured solution, on three sizes of lattice"
    return Line("generator is the equation's", verdict_of(found.holds), evidence, method)
