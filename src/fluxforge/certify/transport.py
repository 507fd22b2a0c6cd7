"""Properties of schemes of transport: flux, limiter, total variation, Riemann problems, boundary layers."""

import math
from dataclasses import dataclass

from fluxforge._types import JsonObject
from fluxforge.certify._evidence import Line, Verdict, verdict_of
from fluxforge.certify._identity import Identity
from fluxforge.certify._pieces import Range
from fluxforge.certify.harten import StepBound
from fluxforge.certify.layer import BoundaryLayer
from fluxforge.certify.limiter import LimiterRegion
from fluxforge.certify.monotone import EFlux, Monotonicity
from fluxforge.certify.riemann import RiemannStudy
from fluxforge.errors import SchemeError
from fluxforge.scheme._document import find, split_name
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme.fluxes import FLUXES, NumericalFlux
from fluxforge.scheme.limiters import LIMITERS, Limiter


@dataclass(frozen=True)
class TransportProperties:
    """The results; None for what does not apply or could not be established.

    `states` is the range of u that fluxes are examined for. `peclet_limit` is the cell Péclet number up to which a flux
    that fails at large ones is monotone. `limited_steps`: the limiter is used in steps of Euler, for which its
    region is made.
    """

    states: Range
    consistent: Identity | None = None
    antisymmetric: Identity | None = None
    monotone: Monotonicity | None = None
    peclet_limit: float | None = None
    entropy: EFlux | None = None
    steps: StepBound | None = None
    limiter: LimiterRegion | None = None
    riemann: tuple[RiemannStudy, ...] = ()
    layer: BoundaryLayer | None = None
    limited_steps: bool = False

    @property
    def variation_to(self) -> float | None:
        """The Courant number up to which the total variation is proved not to grow; of a limiter, for linear f."""
        if self.steps is not None:
            return self.steps.variation
        return 1.0 if self.limiter is not None and self.limiter.holds and self.limited_steps else None

    def to_document(self) -> JsonObject:
        """As JSON values, null for what is not established."""
        mono, bound, region = self.monotone, self.steps, self.limiter
        return {
            "states": list(self.states),
            "consistent": None if self.consistent is None else self.consistent.holds,
            "antisymmetric": None if self.antisymmetric is None else self.antisymmetric.holds,
            "monotone": None if mono is None else mono.holds,
            "monotone_to_peclet": self.peclet_limit,
            "e_flux": None if self.entropy is None else self.entropy.holds,
            "variation_to_courant": self.variation_to,
            "maximum_principle_to_courant": None if bound is None else bound.extrema,
            "limiter_in_region": None if region is None else region.holds,
            "riemann": [
                {
                    "problem": str(study.problem),
                    "cells": list(study.cells),
                    "l1": [error if math.isfinite(error) else None for error in study.errors],
                    "falls": study.falls,
                    "overshoot": study.overshoot if math.isfinite(study.overshoot) else None,
                }
                for study in self.riemann
            ],
        }


def named_flux(scheme: Scheme) -> NumericalFlux | None:
    """The numerical flux that a scheme is named after, if its formulas are those of that name."""
    return FLUXES.get(_own_space(scheme))


def named_limiter(scheme: Scheme) -> Limiter | None:
    """The limiter that a scheme is named after, if its formulas are those of that name."""
    return LIMITERS.get(_own_space(scheme))


def _own_space(scheme: Scheme) -> str:
    """The space in the name of a scheme; an empty text if its formulas are not those of its name."""
    parts = split_name(scheme.name)
    try:
        own = parts and find(scheme.name, scheme.equation, dimension=scheme.dimension or 2).stages == scheme.stages
    except SchemeError:
        return ""
    return parts.space.name if parts is not None and own else ""


def identity_line(consistent: Identity, antisymmetric: Identity) -> Line:
    """Whether F is a flux of the equation."""
    parts = []
    for found, right, wrong in (
        (consistent, "F(u, u) = f(u) a·n", "F(u, u) differs from f(u) a·n"),
        (antisymmetric, "F changes its sign with its cells", "F does not change its sign with its cells"),
    ):
        far = f" by {found.apart:.2g} at {found.at}" if not found.holds else f" ({found.by})"
        parts.append((right if found.holds else wrong) + far)
    method = "algebra; random points where it does not decide"
    return Line("consistent flux", verdict_of(consistent.holds and antisymmetric.holds), "; ".join(parts), method)


def range_words(states: Range) -> str:
    """`u from -1 to 1`."""
    return f"u from {states[0]:g} to {states[1]:g}"


def monotone_line(found: Monotonicity, states: Range, limit: float | None) -> Line:
    """Whether ∂F/∂u_P ≥ 0 ≥ ∂F/∂u_N, with the worst point where it is not."""
    method = f"interval bisection over {range_words(states)}"
    method += "" if found.peclet is None else f" and cell Péclet numbers |a·n| δ/K up to {found.peclet:g}"
    if found.holds is None:
        evidence = f"∂F/∂u_P ≥ {found.rising.bound:.2g} and ∂F/∂u_N ≤ {-found.falling.bound:.2g} is all that is shown"
        return Line("monotone flux", Verdict.UNKNOWN, evidence, method)
    if found.holds:
        gap = "" if found.exactly else f" to within {-min(found.rising.bound, found.falling.bound):.1g}"
        peclet = "" if found.peclet is None else f", cell Péclet numbers up to {found.peclet:g}"
        return Line(
            "monotone flux",
            Verdict.HOLDS,
            f"∂F/∂u_P ≥ 0 ≥ ∂F/∂u_N{gap} for {range_words(states)}{peclet}",
            method,
        )
    where = _worst_point(found)
    if limit:
        return Line("monotone flux", Verdict.MEASURED, f"up to a cell Péclet number of {limit:.3g}; {where}", method)
    return Line("monotone flux", Verdict.FAILS, where, method)


def _worst_point(found: Monotonicity) -> str:
    """The slope of the wrong sign and where it is taken."""
    rises = found.rising.value <= found.falling.value
    worst = found.rising if rises else found.falling
    value = worst.value if rises else -worst.value
    at = [f"{name} = {x:.3g}" for name, x in zip(found.variables, worst.at, strict=True)]
    return f"{'∂F/∂u_P' if rises else '∂F/∂u_N'} = {value:.3g} at {', '.join(at)}"


def entropy_line(found: EFlux) -> Line:
    """Osher's condition, from which convergence to the entropy solution follows."""
    name, method = "E-flux", "sign(u_N − u_P)(F − f(u) a·n) ≤ 0 for all u between"
    if found.follows:
        return Line(name, Verdict.HOLDS, "as every monotone flux is", "from monotonicity")
    if found.holds is False:
        p, n, u = found.at
        evidence = f"F is on the wrong side of f(u) by {found.excess:.3g} at u_P = {p:.3g}, u_N = {n:.3g}, u = {u:.3g}"
        return Line(name, Verdict.FAILS, evidence, method)
    return Line(
        name, Verdict.UNKNOWN, f"no counterexample on a grid of 41³ states; F exceeds by {found.excess:.2g}", method
    )


def bound_line(found: StepBound, states: Range) -> Line:
    """Up to which Courant number the total variation does not grow and no new extremum appears."""
    evidence = (
        f"on a row of cells with Euler steps, {range_words(states)}: total variation does not grow up to Courant "
        f"number {found.variation:.3g} (random rows: {_finite(found.measured_variation)}), no new extremum up to "
        f"{found.extrema:.3g} (random rows: {_finite(found.measured_extrema)})"
    )
    method = "Harten's coefficients by intervals; one step from 4,000 random rows"
    sound = found.measured_variation >= found.variation and found.measured_extrema >= found.extrema
    return Line("total variation and maximum principle", verdict_of(sound), evidence, method)


def limited_bound_line() -> Line:
    """The line of the Courant number that the region of a limiter implies."""
    evidence = "for linear f on a row of cells with Euler steps: total variation does not grow up to Courant number 1"
    return Line("total variation", Verdict.HOLDS, evidence, "Harten's lemma, from the region of the limiter")


def _finite(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "no growth up to 4"


def layer_line(found: BoundaryLayer) -> Line:
    """Whether a steady boundary layer oscillates, at which cell Péclet numbers."""
    parts = [
        f"{peclet:g}: {'beyond the walls by ' + format(off, '.2g') if off > 1e-9 else 'none'}"
        for peclet, off in zip(found.peclet, found.overshoot, strict=True)
    ]
    verdict = verdict_of(max(found.overshoot) <= 1e-9)
    evidence = "overshoot by cell Péclet number, " + "; ".join(parts)
    return Line("steady boundary layer without oscillation", verdict, evidence, "steady state on a row of 24 squares")
