"""What a certificate was asked, and how its findings answer the scheme's claims."""

from collections.abc import Mapping
from dataclasses import dataclass

from fluxforge.certify._claims import SpaceFinding, space_claim
from fluxforge.certify._families import Levels
from fluxforge.certify._family import FamilyResult
from fluxforge.certify._rates import LEAST_LEVELS
from fluxforge.certify.rate import Rate
from fluxforge.certify.semidiscrete import SemiDiscrete
from fluxforge.certify.stability import Stability
from fluxforge.certify.units import Units
from fluxforge.mesh import Mesh
from fluxforge.scheme import Scheme

NO_FACTOR = "the scheme is not a function of one operator, so it has no R(z)"
UNSETTLED = "the rates do not settle"

# The questions whose answers each claim is held against.
QUESTIONS = {
    "conservative": ("conservation",),
    "linear_exact": ("patch tests",),
    "generator": ("patch tests", "generator", "units"),
    "time_order": ("order in time",),
    "stable_to": ("stability",),
}


@dataclass(frozen=True)
class Request:
    """What to certify, on what, and how thoroughly."""

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


def left_out(request: Request) -> dict[str, str]:
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


def claim_reasons(
    reasons: Mapping[str, str], steady: Stability | None, space: Mapping[str, FamilyResult]
) -> dict[str, str]:
    """Why claims were not established, by the names of the claims; `reasons` are those of the questions."""
    questions = QUESTIONS | {space_claim(family): (family,) for family in space}
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
    """The right system, in any units; one that is wrong in either is wrong, whether or not the other is known.

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
