"""ψ = (c₀ + c₁ ν + c₂ ν²) (σ/cos θ + (1 − σ) cos θ): the family among which the free coefficient is chosen."""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from fluxforge._types import FaceField
from fluxforge.pde._equation import HEAT
from fluxforge.scheme._damped import Damping, damped_space
from fluxforge.scheme._integrate import integrate
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme._tableau import EULER
from fluxforge.skew._operator import Invariants

DIGITS = 2
"""Digits that the constants are rounded to once they are chosen."""


class Constants(NamedTuple):
    """c₀ + c₁ ν + c₂ ν² at walls (ν = 0), between rectangles (ν = 1) and between triangles (ν = 4/3), and σ."""

    wall: float
    square: float
    triangle: float
    mix: float


CORRECTED = Constants(1.0, 1.0, 1.0, 1.0)
"""The over-relaxed correction: ψ = 1/cos θ."""
RANGES = {"wall": (0.8, 2.0), "square": (0.7, 1.35), "triangle": (0.6, 1.25), "mix": (0.3, 1.0)}
"""The ranges in which constants are searched."""


def to_damping(constants: Constants) -> Damping:
    """The constants as fractions of a power of ten, for a scheme."""
    return Damping(*(Fraction(round(value * 10**DIGITS), 10**DIGITS) for value in constants))


def round_constants(constants: Constants) -> Constants:
    """The constants with `DIGITS` digits."""
    return Constants(*(round(value, DIGITS) for value in constants))


def face_weights(constants: Constants, invariants: Invariants) -> FaceField:
    """ψ on the faces."""
    c0, c1, c2 = _polynomial(constants)
    nu, cosine = invariants.nu, invariants.cosine
    return np.asarray((c0 + c1 * nu + c2 * nu**2) * (constants.mix / cosine + (1.0 - constants.mix) * cosine))


def _polynomial(constants: Constants) -> tuple[float, float, float]:
    rise, on = constants.square - constants.wall, constants.triangle - constants.wall
    c2 = 2.25 * on - 3.0 * rise
    return constants.wall, rise - c2, c2


def law_text(constants: Constants) -> str:
    """ψ as a formula of ν and cos θ."""
    c0, c1, c2 = _polynomial(constants)
    return f"({c0:.4g} {c1:+.4g} ν {c2:+.4g} ν²) ({constants.mix:.4g}/cos θ {1.0 - constants.mix:+.4g} cos θ)"


@dataclass(frozen=True)
class ChosenLaw:
    """Constants with the name of what they were chosen for."""

    objective: str
    constants: Constants

    def scheme(self, name: str) -> Scheme:
        """The scheme of the heat equation with forward Euler."""
        summary = f"flux for skewed meshes, its free coefficient chosen for {self.objective}"
        space = damped_space(name, summary, to_damping(self.constants))
        return integrate(EULER, HEAT, space(2), name=name)
