"""What the code of a scheme has to compute and to read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import sympy as sp

from fluxforge.expression import symbol
from fluxforge.pde import Where
from fluxforge.scheme._scheme import Scheme, Stage
from fluxforge.scheme._symbols import EDGE_GEOMETRY, Hop, constants


@dataclass(frozen=True)
class Arguments:
    """The parameters a step takes: numbers, Δt first; arrays over cells; arrays over the slots of cells, as A is."""

    constants: tuple[str, ...]
    cells: tuple[str, ...]
    slots: tuple[str, ...]

    @staticmethod
    def of(scheme: Scheme) -> "Arguments":
        """Those of the scheme's equation; lengths of tangential parts only where the scheme contains them."""
        equation = scheme.equation
        *numbers, step = constants(equation)
        present = names(expressions(scheme.stages))
        cells = tuple(p.name for p in equation.parameters if p.where is Where.CELL)
        slots = tuple(
            name
            for p in equation.parameters
            if p.where is not Where.CELL and p.name not in numbers
            for name in (*p.edge_names(), *(own for own in p.tangential_names if present & _on_legs(own)))
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


def expressions(stages: Iterable[Stage]) -> Iterator[sp.Expr]:
    """Everything that is evaluated."""
    for stage in stages:
        for messages in sums(stage).values():
            yield from messages.values()
        yield from (output.expression for output in stage.outputs.values())


def names(found: Iterable[sp.Expr]) -> set[str]:
    """The names of all symbols in some expressions."""
    return {s.name for expression in found for s in expression.free_symbols}


def _on_legs(name: str) -> set[str]:
    """What an edge's symbol is called in messages over edges and paths."""
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
