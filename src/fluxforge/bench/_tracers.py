"""Flows and initial fields of transport tests: rotation and LeVeque's deformational flow."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from fluxforge.mesh._parameter_values import Curl

Profile: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
# One rotation about the centre in time 1.
ROTATION = Curl("-pi*((x - 0.5)**2 + (y - 0.5)**2)")
DEFORMATION_PERIOD = 1.5
DEFORMATION = Curl(f"sin(pi*x)**2*sin(pi*y)**2*cos(pi*t/{DEFORMATION_PERIOD})/pi")
BELL_RADIUS = 0.15
CENTRES = ((0.35, 0.5), (0.65, 0.5))


def _distance(x: np.ndarray, y: np.ndarray, centre: tuple[float, float]) -> np.ndarray:
    return np.hypot(x - centre[0], y - centre[1])


def cone(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A cone of height 1 and radius 0.15 around (0.5, 0.25)."""
    return np.maximum(0.0, 1 - _distance(x, y, (0.5, 0.25)) / 0.15)


def slotted_cylinder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Zalesak's disk: 1 within 0.15 of (0.5, 0.75), except for a slot of width 0.05 from below up to y = 0.85."""
    slot = (np.abs(x - 0.5) < 0.025) & (y < 0.85)
    return ((_distance(x, y, (0.5, 0.75)) < 0.15) & ~slot).astype(float)


def gaussian_hills(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Two smooth hills of height 0.95."""
    hills = [np.exp(-5 * (0.5 * _distance(x, y, centre) / BELL_RADIUS) ** 2) for centre in CENTRES]
    return np.asarray(0.95 * sum(hills))


def cosine_bells(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Two bells ½(1 + cos πr/R), between 0.1 and 1, with one continuous derivative."""
    bells = [0.5 * (1 + np.cos(np.pi * np.minimum(_distance(x, y, c) / BELL_RADIUS, 1))) for c in CENTRES]
    return np.asarray(0.1 + 0.9 * sum(bells))


def slotted_cylinders(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Two cylinders of value 1 on 0.1 with slots of a third of the radius, one open at the top, one at the bottom."""
    inside = np.zeros(np.shape(x), bool)
    for centre, opens in zip(CENTRES, (1, -1), strict=True):
        slot = (np.abs(x - centre[0]) < BELL_RADIUS / 6) & (opens * (y - centre[1]) > -5 / 12 * BELL_RADIUS)
        inside |= (_distance(x, y, centre) < BELL_RADIUS) & ~slot
    return np.where(inside, 1.0, 0.1)


def correlated_bells(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """0.9 − 0.8 q², where q are the cosine bells."""
    return np.asarray(0.9 - 0.8 * cosine_bells(x, y) ** 2)


ROTATED_PROFILES: Mapping[str, Profile] = MappingProxyType({"cone": cone, "slotted cylinder": slotted_cylinder})
TRACERS: Mapping[str, Profile] = MappingProxyType(
    {
        "Gaussian hills": gaussian_hills,
        "cosine bells": cosine_bells,
        "slotted cylinders": slotted_cylinders,
        "correlated bells": correlated_bells,
    }
)
