"""A scheme's own claims against what was measured."""

import math
from dataclasses import dataclass
from typing import Any

from fluxforge.scheme import Claims

TIME_TOLERANCE = 0.1
SPACE_TOLERANCE = 0.15
INTERVAL_TOLERANCE = 1e-9


@dataclass(frozen=True)
class ClaimCheck:
    """A claim, what was measured, and whether it holds: None where it was not measured."""

    property: str
    claimed: Any
    measured: Any
    holds: bool | None

    def words(self) -> str:
        """Both in words, numbers to four digits."""
        return f"claimed {_value(self.claimed)}, measured {_value(self.measured)}"


def _value(value: object) -> str:
    return "none" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Measured:
    """What claims are held against. None stands for what was not measured."""

    conservative: bool | None
    linear_exact: bool | None
    time_order: float | None
    time_measured: bool
    generator: bool | None
    stable_to: float | None
    space: dict[str, tuple[bool, float | None]]


def check_claims(claims: Claims, measured: Measured) -> tuple[ClaimCheck, ...]:
    """One check per claim that is made."""
    checks = [
        ClaimCheck(name, claimed, found, None if found is None else found == claimed)
        for name in ("conservative", "linear_exact", "generator")
        if (claimed := getattr(claims, name)) is not None
        for found in (getattr(measured, name),)
    ]
    if claims.time_order is not None:
        found = measured.time_order
        right = (
            None
            if not measured.time_measured
            else found is not None and abs(found - claims.time_order) <= TIME_TOLERANCE
        )
        checks.append(ClaimCheck("time_order", claims.time_order, found, right))
    if claims.stable_to is not None:
        checks.append(_interval(claims.stable_to, measured.stable_to))
    for family, order in claims.space.items():
        if family in measured.space:
            checks.append(_space(family, order, *measured.space[family]))
    return tuple(checks)


def _interval(claimed: float, found: float | None) -> ClaimCheck:
    if found is None:
        return ClaimCheck("stable_to", _plain(claimed), None, None)
    same = claimed == found or math.isclose(claimed, found, rel_tol=INTERVAL_TOLERANCE)
    return ClaimCheck("stable_to", _plain(claimed), _plain(found), same)


def _space(family: str, claimed: float, convergent: bool, order: float | None) -> ClaimCheck:
    name = f"space order on {family}"
    if claimed == 0:
        return ClaimCheck(name, 0.0, order if convergent else 0.0, not convergent)
    holds = convergent and order is not None and order >= claimed - SPACE_TOLERANCE
    return ClaimCheck(name, claimed, order, holds)


def _plain(value: float) -> float | str:
    return "unlimited" if math.isinf(value) else value
