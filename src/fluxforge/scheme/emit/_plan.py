"""What the code of a scheme has to compute and to read."""

from collections.abc import Iterable, Iterator

import sympy as sp

from fluxforge.expression import symbol
from fluxforge.scheme._scheme import Scheme, Stage
from fluxforge.scheme._symbols import EDGE_GEOMETRY, Hop


def sums(stage: Stage) -> dict[Hop, dict[str, sp.Expr]]:
    """The messages that the stage's outputs use, hop by hop."""
    used = {s for output in stage.outputs.values() for s in output.expression.free_symbols}
    needed = {name: message for name, message in stage.messages.items() if symbol(name) in used}
    hops = (hop for hop in Hop if any(message.hop is hop for message in needed.values()))
    return {hop: {name: m.expression for name, m in needed.items() if m.hop is hop} for hop in hops}


def expressions(stages: Iterable[Stage]) -> Iterator[sp.Expr]:
    """Everything that is evaluated."""
    for stage in stages:
        for messages in sums(stage).values():
            yield from messages.values()
        yield from (output.expression for output in stage.outputs.values())


def names(found: Iterable[sp.Expr]) -> set[str]:
    """The names of all symbols in some expressions."""
    return {s.name for expression in found for s in expression.free_symbols}


def unread(scheme: Scheme) -> list[str]:
    """The geometry of a face that a step does not need."""
    present = names(expressions(scheme.stages))
    read = {name for name in EDGE_GEOMETRY if present & {name, f"{name}_PN", f"{name}_NQ"}}
    if present & {"d_PQ_x", "d_PQ_y", "delta_PQ"}:
        read |= {"d_x", "d_y"}
    if scheme.implicit:
        read.add("chi")
    return [name for name in EDGE_GEOMETRY if name not in read]
