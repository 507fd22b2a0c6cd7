"""Results about transport: flux, limiter, total variation, Riemann problems and boundary layers of a scheme."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import sympy as sp

from fluxforge._types import JsonObject

Range = tuple[float, float]
Ranges = Mapping[sp.Symbol, Range]


@dataclass(frozen=True)
class Identity:
    """Whether two formulas are equal, examined `by` algebra or random points; `apart` is the largest gap, at `at`."""

    holds: bool
    by: str
    apart: float = 0.0
    at: str = ""


@dataclass(frozen=True)
class Least:
    """`bound` ≤ the least value ≤ `value`, which the function takes at `at`; `value` is ∞ if no point was finite.

    If the function is nowhere negative, `bound` is 0: how far above zero it stays is not computed. `boxes` counts the
    enclosures, and `open_at` is the middle of the undecided box with the lowest bound.
    """

    bound: float
    value: float
    at: tuple[float, ...]
    boxes: int
    open_at: tuple[float, ...] | None = None

    def worse(self, other: "Least") -> "Least":
        """The least value over two domains together."""
        value, at = min((self.value, self.at), (other.value, other.at))
        bound, open_at = (self.bound, self.open_at) if self.bound <= other.bound else (other.bound, other.open_at)
        return Least(bound, value, at, self.boxes + other.boxes, open_at)


# A negative bound of a slope down to minus this, relative to the largest slope of f, is tolerated.
MONOTONE_SLACK = 4e-3


@dataclass(frozen=True)
class Monotonicity:
    """Enclosures of the least ∂F/∂u_P (`rising`) and −∂F/∂u_N (`falling`) over the states and a·n = ±1.

    With diffusion they are over cell Péclet numbers up to `peclet`, for |a·n| + K/δ = 1; `peclet` is None without.

    `scale` is the largest |a f′(u)|, `variables` the names of the coordinates of a point.
    """

    rising: Least
    falling: Least
    scale: float
    variables: tuple[str, ...]
    peclet: float | None = None

    @property
    def slack(self) -> float:
        """The largest violation that is tolerated."""
        return MONOTONE_SLACK * self.scale

    @property
    def holds(self) -> bool | None:
        """Whether F is monotone, within `slack`: True and False are proved; None if intervals do not decide."""
        if min(self.rising.value, self.falling.value) < -self.slack:
            return False
        return True if min(self.rising.bound, self.falling.bound) >= -self.slack else None

    @property
    def exactly(self) -> bool:
        """Whether F is proved monotone without slack."""
        return min(self.rising.bound, self.falling.bound) >= 0


@dataclass(frozen=True)
class EFlux:
    """Osher's condition: `excess` is the largest sign(u_N − u_P)(F − f(u) a·n) found, positive if it is violated.

    It is found at `at`: u_P, u_N and u between them. `follows`: the condition follows from monotonicity.
    """

    holds: bool | None
    excess: float
    at: tuple[float, float, float]
    follows: bool = False


@dataclass(frozen=True)
class StepBound:
    """Courant numbers max|f′| Δt/h up to which the total variation does not grow, and no new extremum appears.

    `variation` and `extrema` are proved; `measured_variation` and `measured_extrema` are the smallest ones at which
    one step from random rows of cells made the total variation, or an extremum, grow: at least the proved ones.
    """

    variation: float
    extrema: float
    measured_variation: float
    measured_extrema: float


# The accuracy to which the margin of a bound is enclosed near 0.
REGION_SLACK = 5e-3
# A violation found at a point counts from this size on, far below the slack; smaller ones may be round-off.
REGION_BROKEN = 1e-9


@dataclass(frozen=True)
class LimiterRegion:
    """The least margin of every bound, by its name, with the r, c and q where it is taken; none may be negative.

    `at_one`: φ(1, 1, c) as a formula, or a number. `jumps_at_one`: whether φ may jump at or near r = q = 1.
    `depends`: φ depends on c; `downwind`: on q, for which the points of `margins` have t with q = t/(1 − |t|).
    """

    margins: dict[str, Least]
    at_one: sp.Expr
    jumps_at_one: bool
    depends: bool
    downwind: bool = False

    @property
    def violated(self) -> str | None:
        """The name of the bound with the largest violation; None if none is violated."""
        name = min(self.margins, key=lambda each: self.margins[each].value)
        return name if self.margins[name].value < -REGION_BROKEN else None

    @property
    def holds(self) -> bool | None:
        """Whether φ is in the region: False is proved by a point, True within `REGION_SLACK` or exactly if `by_form`.

        None if intervals do not decide.
        """
        if self.violated is not None:
            return False
        return True if min(one.bound for one in self.margins.values()) >= -REGION_SLACK else None

    @property
    def by_form(self) -> bool:
        """Whether the bounds follow from the form of φ, without bisection."""
        return all(one.boxes == 0 for one in self.margins.values())

    @property
    def second_order(self) -> bool:
        """Whether φ(1) = 1 and φ does not jump there."""
        return not self.jumps_at_one and bool(sp.simplify(self.at_one - 1) == 0)


# Halving the cells reduces the L1 error of a first-order scheme by at least a factor of √2, shock or rarefaction.
RIEMANN_FALLS = 0.85


@dataclass(frozen=True)
class RiemannProblem:
    """Two states, the `kind` of wave between them, and the speed of a shock or contact, None for a rarefaction."""

    kind: str
    left: float
    right: float
    speed: float | None

    def __str__(self) -> str:
        return f"{self.kind} {self.left:g} → {self.right:g}"


@dataclass(frozen=True)
class RiemannStudy:
    """L1 errors on rows of `cells` cells, the speed of a shock from its middle value, and the largest overshoot."""

    problem: RiemannProblem
    cells: tuple[int, ...]
    errors: tuple[float, ...]
    speed: float | None
    overshoot: float

    @property
    def falls(self) -> bool:
        """Whether every refinement reduces the error."""
        return all(np.isfinite(after) and after <= RIEMANN_FALLS * before for before, after in pairwise(self.errors))


@dataclass(frozen=True)
class BoundaryLayer:
    """The largest overshoot of u beyond the values at the walls, 0 and 1, for each cell Péclet number |a| h/K."""

    peclet: tuple[float, ...]
    overshoot: tuple[float, ...]


@dataclass(frozen=True)
class TransportProperties:
    """The results about transport; None for those that do not apply or could not be established.

    `states` is the range of u that fluxes are examined for. `peclet_limit` is the cell Péclet number up to which a flux
    that is not monotone at large ones is monotone. `limited_steps`: the limiter is used in Euler steps, for which its
    region is derived.
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
    limited_steps: bool = False

    @property
    def variation_to(self) -> float | None:
        """The Courant number up to which the total variation is proved not to grow; with a limiter, for linear f."""
        if self.steps is not None:
            return self.steps.variation
        return 1.0 if self.limiter is not None and self.limiter.holds and self.limited_steps else None

    def to_document(self) -> JsonObject:
        """The results as JSON values, null for those not established."""
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
