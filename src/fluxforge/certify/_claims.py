"""The request of a certificate, and the claims of a scheme compared with what was measured."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fluxforge.certify._evidence import LEAST_LEVELS, Line, Verdict, verdict_of
from fluxforge.certify._families import Levels
from fluxforge.certify._family import FamilyResult
from fluxforge.certify.rate import Rate
from fluxforge.certify.semidiscrete import SemiDiscrete
from fluxforge.certify.stability import Stability
from fluxforge.certify.units import Units
from fluxforge.mesh._mesh import Mesh
from fluxforge.scheme._scheme import Claims, Scheme

# How far measured orders may be from claimed ones, and intervals relative to claimed ones. Observed orders in space are
# less certain than those in time; intervals are roots of R, computed to round-off.
TIME_TOLERANCE = 0.1
SPACE_TOLERANCE = 0.15
INTERVAL_TOLERANCE = 1e-9


@dataclass(frozen=True)
class ClaimCheck:
    """A claim, what was measured, and whether it holds: None where that is not established.

    `asked` is false where the user left the measurement out; such a claim does not affect the verdict. `reason` says
    why a claim was left out or is not established.
    """

    property: str
    claimed: Any
    measured: Any
    holds: bool | None
    asked: bool = True
    reason: str = ""

    def words(self) -> str:
        """Claim and measurement in words; numbers have four digits, or all if they differ only beyond."""
        if self.asked and self.holds is not None:
            claimed, measured = _value(self.claimed), _value(self.measured)
            if claimed == measured and not self.holds:
                claimed, measured = str(self.claimed), str(self.measured)
            return f"claimed {claimed}, measured {measured}"
        state = "not established" if self.asked else "left out"
        return f"claimed {_value(self.claimed)}, {state}" + (f": {self.reason}" if self.reason else "")


def _value(value: object) -> str:
    return "none" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class SpaceFinding:
    """The result on a family: an order, errors that demonstrably do not go to zero, or neither; `exact`: round-off."""

    order: float | None
    exact: bool
    fails: bool


@dataclass(frozen=True)
class Measured:
    """The measurements that claims are compared with. None, or a missing family, is what is not established.

    `left_out` says, by property, what the user did not ask for and why; `reasons` why something is not established.
    """

    conservative: bool | None
    linear_exact: bool | None
    time_order: float | None
    generator: bool | None
    stable_to: float | None
    space: Mapping[str, SpaceFinding]
    left_out: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)


def check_claims(claims: Claims, measured: Measured) -> tuple[ClaimCheck, ...]:
    """One check per claim that is made, whether or not it was measured."""
    return tuple(_with_standing(check, measured) for check in _checks(claims, measured))


def _checks(claims: Claims, measured: Measured) -> Iterator[ClaimCheck]:
    for name in ("conservative", "linear_exact", "generator"):
        if (claimed := getattr(claims, name)) is not None:
            found = getattr(measured, name)
            yield ClaimCheck(name, claimed, found, None if found is None else found == claimed)
    if claims.time_order is not None:
        order = measured.time_order
        right = None if order is None else abs(order - claims.time_order) <= TIME_TOLERANCE
        yield ClaimCheck("time_order", claims.time_order, order, right)
    if claims.stable_to is not None:
        yield _interval(claims.stable_to, measured.stable_to)
    for family, order in claims.space.items():
        yield _space(family, order, measured.space.get(family))


def _with_standing(check: ClaimCheck, measured: Measured) -> ClaimCheck:
    """The check, marked as left out where it was, with the reason where it is not established."""
    name = check.property
    if name in measured.left_out:
        return ClaimCheck(name, check.claimed, None, None, asked=False, reason=measured.left_out[name])
    if check.holds is None:
        return ClaimCheck(name, check.claimed, check.measured, None, reason=measured.reasons.get(name, ""))
    return check


def space_claim(family: str) -> str:
    """The name of a family's claim."""
    return f"space order on {family}"


def _interval(claimed: float, found: float | None) -> ClaimCheck:
    if found is None:
        return ClaimCheck("stable_to", _plain(claimed), None, None)
    same = claimed == found or math.isclose(claimed, found, rel_tol=INTERVAL_TOLERANCE)
    return ClaimCheck("stable_to", _plain(claimed), _plain(found), same)


def _space(family: str, claimed: float, found: SpaceFinding | None) -> ClaimCheck:
    """The check of an order; a claimed 0 says that the error does not go to zero, which unsettled rates do not show."""
    name = space_claim(family)
    if found is None or not (found.fails or found.exact or found.order is not None):
        return ClaimCheck(name, claimed, None, None)
    if found.fails:
        return ClaimCheck(name, claimed, 0.0, claimed == 0)
    if found.exact:
        return ClaimCheck(name, claimed, "exact", claimed != 0)
    assert found.order is not None
    return ClaimCheck(name, claimed, found.order, claimed != 0 and found.order >= claimed - SPACE_TOLERANCE)


def _plain(value: float) -> float | str:
    return "unlimited" if math.isinf(value) else value


def claim_line(check: ClaimCheck) -> Line:
    """A claim against its measurement."""
    verdict = Verdict.UNKNOWN if check.holds is None else verdict_of(check.holds)
    if not check.asked:
        verdict = Verdict.LEFT_OUT
    return Line(f"claim: {check.property}", verdict, check.words(), "comparison with the lines above")


NO_FACTOR = "the scheme is not a function of one operator, so it has no R(z)"
UNSETTLED = "the rates do not settle"

# The questions whose answers decide each claim.
QUESTIONS = {
    "conservative": ("conservation",),
    "linear_exact": ("patch tests",),
    "generator": ("patch tests", "generator", "units"),
    "time_order": ("order in time",),
    "stable_to": ("stability",),
}


@dataclass(frozen=True)
class Request:
    """The scheme, the meshes or families, the exact solution, and whether the certificate is quick."""

    scheme: Scheme
    mesh: Mesh | None
    families: tuple[Levels, ...]
    meshes: tuple[Mesh, ...]
    exact: str | None
    quick: bool

    @property
    def dimension(self) -> int:
        """3 where families in space were asked for, or the formulas are written for three coordinates."""
        in_space = any(one.dimension == 3 for one in self.families) or self.scheme.dimension == 3
        return 3 if in_space else 2


def claims_left_out(request: Request) -> dict[str, str]:
    """Claims that the user did not ask about, with the reason."""
    levels = {one.family: len(one.sizes) for one in request.families}
    found = {}
    for family in request.scheme.claims.space:
        if family not in levels:
            found[space_claim(family)] = "the family was not asked for"
        elif levels[family] < LEAST_LEVELS:
            found[space_claim(family)] = f"an order needs {LEAST_LEVELS} levels, {levels[family]} were asked for"
    if request.mesh is not None:
        found["time_order"] = "one mesh was asked for, without studies in time"
    return found


def claim_reasons(reasons: Mapping[str, str], steady: Stability | None, families: tuple[Levels, ...]) -> dict[str, str]:
    """Why claims were not established, by the names of the claims; `reasons` are those of the questions."""
    questions = QUESTIONS | {space_claim(levels.family): (levels.family,) for levels in families}
    found = {
        claim: next((reasons[name] for name in names if name in reasons), UNSETTLED)
        for claim, names in questions.items()
    }
    if steady is not None and steady.interval is None:
        found["stable_to"] = NO_FACTOR
    return found


def generator_holds(
    system: SemiDiscrete | Rate | None, same: Units | None, symbolic: bool | None = None
) -> bool | None:
    """Whether the system is right, in any units; None where that is not known. Wrong in one of both is wrong.

    `symbolic`: whether the formulas are right for every value of the parameters, where that was asked.
    """
    known = [found.holds for found in (system, same) if found is not None]
    if False in known or symbolic is False:
        return False
    return True if system is not None and same is not None else None


def space_finding(found: FamilyResult) -> SpaceFinding:
    """What a refined family shows: its order, exactness, or that its errors do not go to zero."""
    assert found.study is not None
    rates = found.study.l2
    return SpaceFinding(rates.order, rates.exact, found.fails)
