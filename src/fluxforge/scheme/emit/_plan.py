"""The arguments, sums and geometry of a scheme's code, and whether conjugate gradients solve its implicit system.

The system is  V (I − θ(F' − I)) T' = …, with F'_PP = ∂F/∂T_P, a Neumann ghost's T_N = T_P + qδ counted: χ = 0 there.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import sympy as sp

from fluxforge.errors import SchemeError
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation
from fluxforge.pde._parameter import Parameter
from fluxforge.scheme._amplification import Z, amplification, may_grow
from fluxforge.scheme._linear import LinearStage, linear_stages
from fluxforge.scheme._scheme import Message, Output, Scheme, Stage
from fluxforge.scheme._symbols import EDGE_GEOMETRY, NEXT, ON_FACES, Hop, Reduction, constants, turned_names


@dataclass(frozen=True)
class Arguments:
    """The parameters a step takes: numbers, Δt first; arrays over cells; arrays over the slots of cells, as A is."""

    constants: tuple[str, ...]
    cells: tuple[str, ...]
    slots: tuple[str, ...]

    @staticmethod
    def of(scheme: Scheme) -> "Arguments":
        """Those of the scheme's equation; tangential lengths and components only where the scheme contains them."""
        equation = scheme.equation
        *numbers, step = constants(equation)
        present = names(expressions(scheme.stages))
        cells = tuple(p.name for p in equation.parameters if p.in_cells)
        slots = tuple(
            name
            for p in equation.parameters
            if not p.in_cells and p.name not in numbers
            for name in (*p.edge_names(), *(own for own in _apart(p) if present & _on_legs(own)))
        )
        return Arguments((step, *numbers), cells, slots)

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, in the order in which they are passed."""
        return (*self.constants, *self.cells, *self.slots)

    def words(self, slot: str = "{}") -> str:
        """What the arrays among them are, in a sentence; nothing where there are none. `slot` spells those of slots."""
        slots = ", ".join(map(slot.format, self.slots))
        parts = [f"{', '.join(self.cells)}: a number per cell"] if self.cells else []
        parts += [f"{slots}: a number per slot, as A, with n away from the cell"] if slots else []
        return f"\n{'; '.join(parts)}." if parts else ""


def sums(stage: Stage) -> dict[Hop, dict[str, sp.Expr]]:
    """The messages that the stage's outputs use, hop by hop."""
    used = {s for output in stage.outputs.values() for s in output.expression.free_symbols}
    needed = {name: message for name, message in stage.messages.items() if symbol(name) in used}
    hops = (hop for hop in Hop if any(message.hop is hop for message in needed.values()))
    return {hop: {name: m.expression for name, m in needed.items() if m.hop is hop} for hop in hops}


def reductions(stage: Stage) -> dict[str, Reduction]:
    """The reduction of each message over its hop."""
    return {name: message.reduction for name, message in stage.messages.items()}


def expressions(stages: Iterable[Stage]) -> Iterator[sp.Expr]:
    """All expressions that a step evaluates."""
    for stage in stages:
        for messages in sums(stage).values():
            yield from messages.values()
        yield from (output.expression for output in stage.outputs.values())


def names(found: Iterable[sp.Expr]) -> set[str]:
    """The names of all symbols in some expressions."""
    return {s.name for expression in found for s in expression.free_symbols}


def _apart(p: Parameter) -> tuple[str, ...]:
    """The symbols of the tangential parts and components of a vector or tensor on a face."""
    return (*p.tangential_names, *p.conormal_names)


def _on_legs(name: str) -> set[str]:
    """The names of an edge's symbol in messages over edges and paths."""
    return {name, f"{name}_PN", f"{name}_NQ"}


def unread(scheme: Scheme) -> list[str]:
    """The geometry of a face that a step does not need."""
    present = names(expressions(scheme.stages))
    read = {name for name in EDGE_GEOMETRY if present & _on_legs(name)}
    if present & {"d_PQ_x", "d_PQ_y", "d_PQ_z", "delta_PQ"}:
        read |= {"d_x", "d_y"}
    if scheme.implicit:
        read.add("chi")
    return [name for name in EDGE_GEOMETRY if name not in read]


_T, _T_P, _T_N = symbol("T"), symbol("T_P"), symbol("T_N")


def check_solvable(scheme: Scheme) -> None:
    """Raise SchemeError, with the reason, unless an implicit scheme's system is linear, symmetric and definite."""
    if not scheme.implicit:
        return
    reason = _obstacle(scheme)
    if reason:
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


def _obstacle(scheme: Scheme) -> str | None:
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
    return _unsymmetric(last, scheme) or _indefinite(scheme)


def _has_constants(stage: LinearStage) -> bool:
    affine = [*(affine for _, affine in stage.messages.values()), stage.outputs[NEXT]]
    return any(sp.simplify(each.constant) != 0 for each in affine)


def _indefinite(scheme: Scheme) -> str | None:
    """Why the system may be singular, or None; on one cell it is V times the denominator of R, which may not vanish."""
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


def _unsymmetric(stage: LinearStage, scheme: Scheme) -> str | None:
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
        return "its system is not symmetric: the flux through a face differs between its two sides"
    return None


def _other_side(weight: sp.Expr, equation: Equation) -> dict[sp.Symbol, sp.Expr]:
    swap = {symbol(name): -symbol(name) for name in turned_names(equation)}
    for found in weight.free_symbols:
        name, _, end = found.name.rpartition("_")
        if end in ("P", "N") and name:
            swap[found] = symbol(f"{name}_{'N' if end == 'P' else 'P'}")
    return swap
