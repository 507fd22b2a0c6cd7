"""One sentence on a scheme, built from the evidence of its certificate."""

import math
from collections.abc import Iterator
from dataclasses import replace

from fluxforge.certify._certificate import Certificate, FamilyResult
from fluxforge.certify._equations import SAME_SYSTEM
from fluxforge.certify._studies import Rates
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.scheme._scheme import Scheme

# On these families the line between two centroids is normal to the face between them; on the others it is not.
ORTHOGONAL = ("squares", "cross", "equilateral")
SKEWED = ("right", "jittered", "regular", "irregular")
# The words for families of triangles; the others are squares and cubes.
TRIANGLES = {"cross": "crossed", "equilateral": "equilateral", **{name: name for name in SKEWED}}
ORDINALS = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth", "6": "sixth"}
# Orders this near to an integer are quoted as that integer; claims are compared with the same tolerance.
ORDER_TOLERANCE = 0.15


def summarise(certificate: Certificate, scheme: Scheme | None = None) -> str:
    """One sentence on a scheme: flux, orders, largest stable step, conservation, defects.

    Only properties with evidence in the certificate are stated; those not established are listed at the end, and a
    quick certificate is marked as such. Without `scheme`, as for a step given as a function, the words are heat's.
    """
    equation = HEAT if scheme is None else scheme.equation
    clauses = [
        _flux(certificate, scheme),
        *_transport(certificate, equation),
        *_space(certificate),
        *_time(certificate),
    ]
    clauses += [*_stability(certificate, equation), *_conservation(certificate, equation), *_faults(certificate)]
    if absent := _list_not_established(certificate):
        clauses.append(f"not established: {', '.join(absent)}")
    sentence = "; ".join(clauses) + "."
    return sentence + (" (Quick certificate: small meshes only.)" if certificate.quick else "")


def _flux(certificate: Certificate, scheme: Scheme | None) -> str:
    """Explicit or implicit, and the flux in the limit of small steps."""
    if scheme is None:
        kind, unknown = "Step given as a function", "T"
    else:
        kind, unknown = "Implicit" if scheme.implicit else "Explicit", scheme.equation.unknown
    system, rate = certificate.semidiscrete, certificate.rate
    if (system is not None and system.plain) or (rate is not None and rate.plain):
        return f"{kind} two-point flux"
    noun = kind if scheme is None else f"{kind} scheme"
    if certificate.linearity is not None and not certificate.linearity.linear:
        return f"{noun}, not linear in {unknown}"
    if system is not None and system.holds:
        return f"{noun} with a consistent flux other than the two-point one"
    return f"{noun}, linear in {unknown}" if certificate.linearity is not None else noun


def _transport(certificate: Certificate, equation: Equation) -> Iterator[str]:
    """Monotone or not, total variation, and whether Riemann problems tend to the entropy solution."""
    transport = certificate.transport
    if transport is None:
        return
    if transport.consistent is not None and not transport.consistent.holds:
        yield "its flux is not consistent with the equation"
    if transport.monotone is not None and transport.monotone.holds is not None:
        limit = "" if not transport.peclet_limit else f" up to cell Péclet number {transport.peclet_limit:.3g}"
        yield f"monotone{limit}" if transport.monotone.holds or limit else "not monotone"
    if transport.variation_to is not None:
        of = " for linear f" if transport.limiter is not None and not equation.linear else ""
        yield f"total variation diminishing up to Courant number {transport.variation_to:.3g}{of}"
    elif transport.limiter is not None and transport.limiter.holds is False:
        yield "its limiter leaves the region in which the total variation diminishes"
    if any(not study.falls for study in transport.riemann):
        yield "does not converge to the entropy solution"


def _space(certificate: Certificate) -> Iterator[str]:
    outcomes: dict[str, list[str]] = {}
    for family, result in certificate.space.items():
        if result.study is not None:
            outcomes.setdefault(_outcome(result), []).append(family)
    clauses = [f"{outcome} on {_meshes(families)}" for outcome, families in outcomes.items()]
    if len(clauses) == 2 and clauses[0].endswith("orthogonal meshes") and clauses[1].endswith("skewed meshes"):
        clauses[1] = clauses[1].replace("skewed meshes", "skewed ones")
    if clauses:
        yield ", ".join(clauses)
    if certificate.meshes:
        worst = min(certificate.meshes, key=lambda study: (study.l2.convergent, study.l2.order or math.inf))
        yield f"{_order(worst.l2)} on the given meshes"


def _outcome(result: FamilyResult) -> str:
    assert result.study is not None
    if result.fails:
        return "does not converge"
    order = _order(result.study.l2)
    if not result.convergent or result.consistent:
        return order
    if result.effective is None and result.diffusion is None:
        return f"{order} (diffusivity not established)"
    return f"{order} (to the solution of another equation)"


def _order(rates: Rates) -> str:
    if rates.exact:
        return "exact"
    if rates.order is None:
        return "does not converge" if rates.stalled else "no settled order"
    return f"order {_number(rates.order)}"


def _number(order: float) -> str:
    return str(round(order)) if abs(order - round(order)) <= ORDER_TOLERANCE else f"{order:.1f}"


def _meshes(families: list[str]) -> str:
    """Families in words; if all orthogonal or all skewed ones are among them, they are called by that name."""
    names = []
    for name, group in (("orthogonal", ORTHOGONAL), ("skewed", SKEWED)):
        if set(group) <= set(families):
            names.append(name)
            families = [family for family in families if family not in group]
    words = [f"{' and '.join(names)} meshes"] if names else []
    words += [family for family in families if family not in TRIANGLES]
    triangles = [TRIANGLES[family] for family in families if family in TRIANGLES]
    words += [f"{_join(triangles)} triangles"] if triangles else []
    return _join(words)


def _join(words: list[str]) -> str:
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _time(certificate: Certificate) -> Iterator[str]:
    if certificate.time is None or certificate.time.order is None:
        return
    order = _number(certificate.time.order)
    yield f"{ORDINALS[order]} order in time" if order in ORDINALS else f"order {order} in time"


def _stability(certificate: Certificate, equation: Equation) -> Iterator[str]:
    stability = certificate.stability
    if stability is None or stability.dt_max is None:
        return
    where = "an irregular mesh" if certificate.mesh is None else certificate.mesh
    if stability.dt_max == 0:
        yield "unstable at every time step"
    elif math.isinf(stability.dt_max):
        yield "stable at every time step" if stability.bound else "stable at every time step tried"
    else:
        value = f"{stability.dt_max / stability.fourier:.3g}"
        limit = f"up to {value} {equation.words.step_name}{'s' * (value != '1')} on {where}"
        caution = "" if stability.confirmed else ", not confirmed by runs"
        yield f"stable {limit}{caution}" if stability.bound else f"eigenvalues stable {limit}, which is no bound"


def _conservation(certificate: Certificate, equation: Equation) -> Iterator[str]:
    if certificate.conservation is not None:
        verb = "conserves" if certificate.conservation.holds else "does not conserve"
        yield f"{verb} {equation.words.conserved}"


def _faults(certificate: Certificate) -> Iterator[str]:
    """Defects of the scheme: wrong limits, dependence on units, contradicted claims."""
    system, rate = certificate.semidiscrete, certificate.rate
    if system is not None and system.source > SAME_SYSTEM:
        yield "the source enters with a wrong coefficient"
        system = replace(system, source=0.0)
    for limit in (system, rate):
        if limit is not None and not limit.holds:
            yield "its small-step limit is not the equation"
    if certificate.units is not None and not certificate.units.holds:
        yield "its result depends on the units"
    if certificate.contradicted:
        yield f"contradicts its claims: {', '.join(check.property for check in certificate.contradicted)}"


def _list_not_established(certificate: Certificate) -> list[str]:
    """Properties that the sentence should state, and for which the certificate has no number."""
    has_order = bool(certificate.meshes) or any(one.study is not None for one in certificate.space.values())
    established = {
        "order in space": has_order,
        "order in time": certificate.time is not None and certificate.time.order is not None,
        "stability": certificate.stability is not None and certificate.stability.dt_max is not None,
        "conservation": certificate.conservation is not None,
    }
    return [name for name, measured in established.items() if not measured]
