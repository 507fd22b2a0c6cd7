"""The methods of `fluxforge bench time`: steps of u' = Lu, each with its number of operator applications."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fluxforge.bench._carried import Carried
from fluxforge.bench._time_case import Step, TimeCase, fitted_polynomial
from fluxforge.pde._equation import HEAT
from fluxforge.scheme._tableau import TABLEAUX, Tableau, rkc2_tableau, rkl2_tableau
from fluxforge.stepping._exponential import (
    ImplicitStep,
    Polynomial,
    amplification,
    chebyshev_exponential,
    krylov_exponential,
    nearest_polynomial,
    optimal_polynomial,
)
from fluxforge.stepping._frozen_flux import FrozenFlux, freeze_flux

STAGES = (2, 3, 4, 5, 6, 8, 12, 16)
MOST_OPTIMAL = 8
"""Highest degree of polynomials of longest interval: the linear program of degree 16 takes many seconds."""
SUBSTEPS = (1, 2, 4)
_LARGEST_TAIL = 1e-8


@dataclass(frozen=True)
class Method:
    """A method for steps of any number of Fourier steps.

    `make(case, fourier)` returns the step, which applies the operator `stages` times, unless it counts applications
    itself; `factor(z)` is the amplification of a mode, None if the step is not a function of the operator alone.
    """

    family: str
    name: str
    stages: int
    make: Callable[[TimeCase, float], Step]
    factor: Callable[[np.ndarray], np.ndarray] | None = None


def tableau_method(family: str, tableau: Tableau) -> Method:
    """The method of a tableau, without local coefficients."""
    s = len(tableau.rows)

    def make(case: TimeCase, fourier: float) -> Step:
        A = fourier * case.A
        return FrozenFlux(tableau, A, np.zeros(case.graph.cells), (A,) * (s - 1))

    return Method(family, tableau.name, s, make, lambda z: amplification(tableau, z, [1.0] * (s - 1)))


def polynomial_method(family: str, name: str, polynomial: Polynomial) -> Method:
    """The method p(ΔtL)T, by the recurrence of Chebyshev polynomials."""

    def make(case: TimeCase, fourier: float) -> Step:
        A = fourier * case.A
        return lambda T: polynomial.apply(A, T)

    return Method(family, name, polynomial.degree, make, polynomial.value)


def krylov_method(size: int) -> Method:
    """The method exp(ΔtL)T in a Krylov space of dimension `size`."""

    def make(case: TimeCase, fourier: float) -> Step:
        A = fourier * case.A
        return lambda T: krylov_exponential(A, case.graph.V, T, size)

    return Method("krylov", f"krylov-{size}", size, make)


def implicit_method(name: str) -> Method:
    """The method Crank–Nicolson or TR-BDF2, whose step counts its applications."""
    return Method(name, name, 1, lambda case, fourier: ImplicitStep(name, fourier * case.A, case.graph.V))


def carried_method(carried: Carried) -> Method:
    """The method with local coefficients."""

    def make(case: TimeCase, fourier: float) -> Step:
        dt = fourier * case.fourier_step
        return freeze_flux(carried.tableau, HEAT, case.graph, dt, carried.coefficients(case.graph, dt))

    return Method("local", carried.name, carried.stages, make)


def highest_optimal_degree() -> int:
    """The highest degree of the polynomials of longest interval."""
    return MOST_OPTIMAL


def stabilised_methods(reach: float, stages: Sequence[int] = STAGES) -> Iterator[Method]:
    """Those of RKL2, RKC2 and the polynomials of longest interval that are stable on [−reach, 0]."""
    for s in stages:
        for family, make in (("rkl2", rkl2_tableau), ("rkc2", rkc2_tableau)):
            tableau = make(s)
            if tableau.stable_to >= reach:
                yield tableau_method(family, tableau)
        # The optimum is below s², so that most cases are excluded without its linear programs.
        if s <= highest_optimal_degree() and s**2 >= reach:
            best = optimal_polynomial(s)
            if best.reach >= reach:
                yield polynomial_method("optimal", f"optimal-{s}", best)


def fitted_methods(reach: float, fourier: float, stages: Sequence[int] = STAGES) -> Iterator[Method]:
    """Polynomials for [−reach, 0]: minimax for e^z, fitted to fields on another mesh, and Chebyshev series."""
    for s in stages:
        series = chebyshev_exponential(s, reach)
        yield polynomial_method("chebyshev", f"chebyshev-{s}", series)
        if is_resolved(series):
            yield polynomial_method("minimax", f"minimax-{s}", nearest_polynomial(s, reach))
            yield polynomial_method("fitted", f"fitted-{s}", fitted_polynomial(s, fourier, reach))


def is_resolved(series: Polynomial) -> bool:
    """Whether the error of polynomials of this degree is above the accuracy of linear programs and fits."""
    return abs(series.coefficients[-1]) > _LARGEST_TAIL


def short_methods(reach: float) -> Iterator[tuple[Method, int]]:
    """The midpoint rule and RK4, each with the least number of substeps that is stable, twice and four times that."""
    for name in ("midpoint", "rk4"):
        tableau = TABLEAUX[name]
        least = max(1, math.ceil(reach / tableau.stable_to))
        for k in SUBSTEPS:
            yield tableau_method(name, tableau), least * k


def carried_substeps(carried: Carried, fourier: float) -> list[int]:
    """The numbers of substeps, up to four times the least, whose Δt is in the trained range."""
    low, high = carried.fourier
    least = max(1, math.ceil(fourier / high * (1.0 - 1e-12)))
    return [least * k for k in SUBSTEPS if low <= fourier / (least * k) <= high]
