"""The claims of a scheme compared with what was measured."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from fluxforge.certify._certificate import Certificate, FamilyResult, Request
from fluxforge.certify._equations import Rate, SemiDiscrete
from fluxforge.certify._evidence import ClaimCheck, Line, Verdict, verdict_of
from fluxforge.certify._families import Levels
from fluxforge.certify._properties import Stability, Units
from fluxforge.certify._studies import LEAST_LEVELS
from fluxforge.certify.flux import named_flux
from fluxforge.certify.transport import TransportProperties
from fluxforge.scheme._scheme import Claims, Scheme

# The largest differences of measured from claimed orders, and of intervals relative to claimed ones. Observed orders in
# space are less certain than those in time; intervals are roots of R, computed to round-off.
TIME_TOLERANCE = 0.1
SPACE_TOLERANCE = 0.15
INTERVAL_TOLERANCE = 1e-9


def check_certificate(
    certificate: Certificate, request: Request, reasons: Mapping[str, str], *, symbolic: bool | None
) -> tuple[ClaimCheck, ...]:
    """One check per claim of the scheme, with the result of the certificate; claims that were not measured included.

    `reasons` says, by question, why something was not established; `symbolic` whether the formulas are right for every
    value of the parameters, None if that was not examined.
    """
    left_out = claims_left_out(request)
    why = claim_reasons(reasons, certificate.stability, request.families)
    checks = []
    for check in _checks(request.scheme.claims, certificate, symbolic):
        name = check.property
        if name in left_out:
            check = ClaimCheck(name, check.claimed, None, None, asked=False, reason=left_out[name])
        elif check.holds is None:
            check = replace(check, reason=why.get(name, ""))
        checks.append(check)
    return (*checks, *transport_claims(request.scheme, certificate.transport))


def _checks(claims: Claims, certificate: Certificate, symbolic: bool | None) -> Iterator[ClaimCheck]:
    measured = {
        "conservative": None if certificate.conservation is None else certificate.conservation.holds,
        "linear_exact": None if certificate.patch is None else certificate.patch.exact(1),
        "generator": generator_holds(certificate.rate or certificate.semidiscrete, certificate.units, symbolic),
    }
    for name, value in measured.items():
        if (claimed := getattr(claims, name)) is not None:
            yield ClaimCheck(name, claimed, value, None if value is None else value == claimed)
    if claims.time_order is not None:
        order = None if certificate.time is None else certificate.time.order
        right = None if order is None else abs(order - claims.time_order) <= TIME_TOLERANCE
        yield ClaimCheck("time_order", claims.time_order, order, right)
    if claims.stable_to is not None:
        interval = None if certificate.stability is None else certificate.stability.interval
        yield _check_interval(claims.stable_to, interval)
    for family, order in claims.space.items():
        yield _check_space_order(family, order, certificate.space.get(family))


def space_claim(family: str) -> str:
    """The name of the claim about the order on a family."""
    return f"space order on {family}"


def _check_interval(claimed: float, measured: float | None) -> ClaimCheck:
    if measured is None:
        return ClaimCheck("stable_to", _interval_value(claimed), None, None)
    same = claimed == measured or math.isclose(claimed, measured, rel_tol=INTERVAL_TOLERANCE)
    return ClaimCheck("stable_to", _interval_value(claimed), _interval_value(measured), same)


def _check_space_order(family: str, claimed: float, result: FamilyResult | None) -> ClaimCheck:
    """The check of an order. A claimed 0 means that the error does not go to zero; unsettled rates do not show that."""
    name = space_claim(family)
    if result is not None and result.study is not None:
        rates = result.study.l2
        if result.fails:
            return ClaimCheck(name, claimed, 0.0, claimed == 0)
        if rates.exact:
            return ClaimCheck(name, claimed, "exact", claimed != 0)
        if rates.order is not None:
            return ClaimCheck(name, claimed, rates.order, claimed != 0 and rates.order >= claimed - SPACE_TOLERANCE)
    return ClaimCheck(name, claimed, None, None)


def _interval_value(value: float) -> float | str:
    return "unlimited" if math.isinf(value) else value


def claim_line(check: ClaimCheck) -> Line:
    """The line that compares a claim with its measurement."""
    verdict = Verdict.UNKNOWN if check.holds is None else verdict_of(check.holds)
    if not check.asked:
        verdict = Verdict.LEFT_OUT
    return Line(f"claim: {check.property}", verdict, check.words(), "comparison with the lines above")


# The questions whose answers decide each claim.
QUESTIONS = {
    "conservative": ("conservation",),
    "linear_exact": ("patch tests",),
    "generator": ("patch tests", "generator", "units"),
    "time_order": ("order in time",),
    "stable_to": ("stability",),
}


def claims_left_out(request: Request) -> dict[str, str]:
    """The claims that the request leaves out, with the reason."""
    levels = {one.family: len(one.sizes) for one in request.families}
    left_out = {}
    for family in request.scheme.claims.space:
        if family not in levels:
            left_out[space_claim(family)] = "the family was not requested"
        elif levels[family] < LEAST_LEVELS:
            left_out[space_claim(family)] = f"an order needs {LEAST_LEVELS} levels, {levels[family]} were requested"
    if request.mesh is not None:
        left_out["time_order"] = "only one mesh was requested, without refinement in time"
    return left_out


def claim_reasons(reasons: Mapping[str, str], steady: Stability | None, families: tuple[Levels, ...]) -> dict[str, str]:
    """Claim → the reason why it was not established; `reasons` maps questions to reasons."""
    questions = QUESTIONS | {space_claim(levels.family): (levels.family,) for levels in families}
    why = {
        claim: next((reasons[name] for name in names if name in reasons), "the rates do not settle")
        for claim, names in questions.items()
    }
    if steady is not None and steady.interval is None:
        why["stable_to"] = "the scheme is not a function of one operator, so it has no R(z)"
    return why


def generator_holds(
    system: SemiDiscrete | Rate | None, units: Units | None, symbolic: bool | None = None
) -> bool | None:
    """Whether the small-step limit is the equation, in any units; False if one is wrong, else None if one is unknown.

    `symbolic`: whether the formulas are right for every value of the parameters, None if that was not examined.
    """
    answers = [result.holds for result in (system, units) if result is not None]
    if False in answers or symbolic is False:
        return False
    return True if system is not None and units is not None else None


def transport_claims(scheme: Scheme, properties: TransportProperties | None) -> tuple[ClaimCheck, ...]:
    """The check of the claim about monotonicity, positive or negative, of the flux that a scheme is named after.

    Empty if the scheme is not named after a flux.
    """
    flux = None if properties is None else named_flux(scheme)
    if flux is None or properties is None:
        return ()
    measured = None if properties.monotone is None else properties.monotone.holds
    reason = "interval arithmetic does not decide it" if measured is None else ""
    holds = None if measured is None else measured == flux.monotone
    return (ClaimCheck("monotone", flux.monotone, measured, holds, reason=reason),)
