"""Checks that conjugate gradients can solve the system of an implicit scheme, and the diagonal of that system.

The system is  V (I − θ(F' − I)) T' = …. Its diagonal contains F'_PP = ∂F/∂T_P, to which a Neumann ghost (χ = 0)
contributes with T_N = T_P + qδ.
"""

import sympy as sp

from fluxforge.errors import SchemeError
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation
from fluxforge.scheme._linear import LinearStage, Z, amplification, linear_stages, may_grow
from fluxforge.scheme._scheme import NEXT, ON_FACES, Hop, Message, Output, Scheme, Stage, turned_names
from fluxforge.scheme.emit._plan import Arguments

_T, _T_P, _T_N = symbol("T"), symbol("T_P"), symbol("T_N")


def check_solvable(scheme: Scheme) -> None:
    """Raise SchemeError, with the reason, unless an implicit scheme's system is linear, symmetric and definite."""
    if not scheme.implicit:
        return
    if (reason := _find_obstacle(scheme)) is not None:
        raise SchemeError(f"scheme {scheme.name!r} is implicit and {reason}; only its LaTeX can be exported")


def diagonal_stages(scheme: Scheme) -> tuple[Stage, ...]:
    """Stages of geometry alone whose last output is F'_PP, for a scheme that `check_solvable` accepts."""
    linear = linear_stages(scheme)
    assert linear is not None
    last = linear[-1]
    mirrored = 1 - symbol("chi")
    messages = {name: Message(expression, hop) for name, (hop, expression) in last.fixed_messages.items()}
    total = last.outputs[NEXT].coefficients.get(_T, sp.Integer(0))
    for name, (hop, affine) in last.messages.items():
        slope = affine.coefficients.get(_T_P, sp.Integer(0)) + mirrored * affine.coefficients.get(_T_N, sp.Integer(0))
        messages[name] = Message(sp.factor(slope), hop)
        total += last.outputs[NEXT].coefficients.get(symbol(name), sp.Integer(0)) * symbol(name)
    needed = {name: message for name, message in messages.items() if symbol(name) in total.free_symbols}
    return (*scheme.stages[:-1], Stage(needed, {NEXT: Output(total)}))


def _find_obstacle(scheme: Scheme) -> str | None:
    """Why the system cannot be solved by conjugate gradients, or None."""
    stages = linear_stages(scheme)
    if stages is None:
        return "not linear in T"
    if any(stage.outputs for stage in stages[:-1]) or NEXT not in stages[-1].outputs:
        return "T passes through several stages, so its system is not known to be symmetric"
    last = stages[-1]
    if any(hop is not Hop.EDGE for hop, _ in last.messages.values()):
        return "reaches beyond the nearest neighbours, so its system is not known to be symmetric"
    if _has_constants(last):
        return "has a term without T and S, which belongs in S"
    return _explain_asymmetry(last, scheme) or _explain_singularity(scheme)


def _has_constants(stage: LinearStage) -> bool:
    affine = [*(affine for _, affine in stage.messages.values()), stage.outputs[NEXT]]
    return any(sp.simplify(each.constant) != 0 for each in affine)


def _explain_singularity(scheme: Scheme) -> str | None:
    """Why the system may be singular, or None. On one cell it is V times the denominator of R, which must not be 0."""
    if may_grow(scheme.equation):
        return "its reaction lets fields grow: a mode that grows at 1/(theta*dt) makes its system singular"
    factor = amplification(scheme)
    if factor is None or factor.has(sp.nan, sp.zoo, sp.oo):
        return "it has no rational amplification factor to judge its system by"
    exact = sp.Poly(sp.nsimplify(sp.fraction(factor)[1], rational=True), Z)
    roots = [root for root in exact.real_roots() if root <= 0] if exact.degree() > 0 else []
    if roots:
        return f"its system is not positive definite: a mode of decay rate {sp.N(-max(roots), 3)}/dt makes it singular"
    return None


def _explain_asymmetry(stage: LinearStage, scheme: Scheme) -> str | None:
    """Why the system is not symmetric, or None: V ∂F/∂T_N must be the same from both sides of a face."""
    inner = stage.outputs[NEXT].coefficients
    weight = sp.Integer(0)
    for name, (_, affine) in stage.messages.items():
        weight += inner.get(symbol(name), sp.Integer(0)) * affine.coefficients.get(_T_N, sp.Integer(0))
    weight *= symbol("V")
    ends = {s for s in weight.free_symbols if s.name.endswith(("_P", "_N"))}
    arguments = Arguments.of(scheme)
    edge = {symbol(name) for name in (*arguments.constants, *arguments.slots, *ON_FACES)}
    weight = weight.xreplace({s: symbol(f"{s.name}_P") for s in weight.free_symbols - ends - edge})
    difference = weight - weight.xreplace(_other_side(weight, scheme.equation))
    if sp.simplify(difference) != 0:
        return "its system is not symmetric: V times the weight of the neighbour differs between the sides of a face"
    return None


def _other_side(weight: sp.Expr, equation: Equation) -> dict[sp.Symbol, sp.Expr]:
    swap = {symbol(name): -symbol(name) for name in turned_names(equation)}
    for s in weight.free_symbols:
        name, _, end = s.name.rpartition("_")
        if end in ("P", "N") and name:
            swap[s] = symbol(f"{name}_{'N' if end == 'P' else 'P'}")
    return swap
