"""Parts of the code of all targets: arguments, messages, geometry; a title, the formula in plain text, the mesh."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import sympy as sp

from fluxforge.expression._symbols import symbol
from fluxforge.pde._parameter import Parameter
from fluxforge.scheme._scheme import EDGE_GEOMETRY, NEXT, Ghost, Hop, Message, Reduction, Scheme, Stage, constants
from fluxforge.scheme.emit._dialects import PLAIN, write_infix


@dataclass(frozen=True)
class Arguments:
    """The parameters a step takes: numbers, Δt first; arrays over cells; arrays over the slots of cells, as A is."""

    constants: tuple[str, ...]
    cells: tuple[str, ...]
    slots: tuple[str, ...]

    @staticmethod
    def of(scheme: Scheme) -> "Arguments":
        """The parameters of the scheme's equation; tangential parts only where the scheme contains them."""
        equation = scheme.equation
        *numbers, step = constants(equation)
        present = symbol_names(all_expressions(scheme.stages))
        cells = tuple(p.name for p in equation.parameters if p.in_cells)
        slots = tuple(
            name
            for p in equation.parameters
            if not p.in_cells and p.name not in numbers
            for name in (*p.edge_names(), *(own for own in _parts_of_vectors(p) if present & _leg_names(own)))
        )
        return Arguments((step, *numbers), cells, slots)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all parameters, in the order in which they are passed."""
        return (*self.constants, *self.cells, *self.slots)

    def words(self, slot: str = "{}") -> str:
        """A sentence that describes the arrays, empty without arrays; `slot` is the format of names over slots."""
        slots = ", ".join(map(slot.format, self.slots))
        parts = [f"{', '.join(self.cells)}: a number per cell"] if self.cells else []
        parts += [f"{slots}: a number per slot, as A, with n away from the cell"] if slots else []
        return f"\n{'; '.join(parts)}." if parts else ""


def messages_by_hop(stage: Stage) -> dict[Hop, dict[str, Message]]:
    """The messages that the stage's outputs use, hop by hop."""
    used = {s for output in stage.outputs.values() for s in output.expression.free_symbols}
    needed = {name: message for name, message in stage.messages.items() if symbol(name) in used}
    hops = (hop for hop in Hop if any(message.hop is hop for message in needed.values()))
    return {hop: {name: message for name, message in needed.items() if message.hop is hop} for hop in hops}


def all_expressions(stages: Iterable[Stage]) -> Iterator[sp.Expr]:
    """All expressions that a step evaluates."""
    for stage in stages:
        for messages in messages_by_hop(stage).values():
            yield from (message.expression for message in messages.values())
        yield from (output.expression for output in stage.outputs.values())


def symbol_names(expressions: Iterable[sp.Expr]) -> set[str]:
    """The names of all symbols in some expressions."""
    return {s.name for expression in expressions for s in expression.free_symbols}


def _parts_of_vectors(p: Parameter) -> tuple[str, ...]:
    """The symbols of the tangential parts and components of a vector or tensor on a face."""
    return (*p.tangential_names, *p.conormal_names)


def _leg_names(name: str) -> set[str]:
    """The names of an edge's symbol in messages over edges and paths."""
    return {name, f"{name}_PN", f"{name}_NQ"}


PATH_VECTOR = ("d_PQ_x", "d_PQ_y", "d_PQ_z")


def unread_geometry(scheme: Scheme) -> list[str]:
    """The names of the geometry of faces that a step does not need."""
    present = symbol_names(all_expressions(scheme.stages))
    read = {name for name in EDGE_GEOMETRY if present & _leg_names(name)}
    if present & {*PATH_VECTOR, "delta_PQ"}:
        read |= {"d_x", "d_y"}
    if scheme.implicit:
        read.add("chi")
    return [name for name in EDGE_GEOMETRY if name not in read]


_OVER = {
    Hop.EDGE: "over the faces of P",
    Hop.PATH: "over the paths P -> N -> Q",
    Hop.RING: "over the cells Q two faces from P",
    Hop.LINE: "over the lines B - P - N - F through the faces of P",
}
_REDUCED = {Reduction.SUM: "sum", Reduction.MIN: "least", Reduction.MAX: "largest"}
_GHOST = {
    Ghost.DIRICHLET: "",
    Ghost.OWNER: "  (a Dirichlet ghost shows its owner's value)",
    Ghost.ZERO: "  (a Dirichlet ghost shows 0)",
}
_MESH = """\
The mesh is a table of the faces of each cell, `slots` of them: 3 for triangles, 4 with quadrilaterals
among them and for tetrahedra.
Nodes are the cells, from 0, then one ghost per boundary face. A Dirichlet ghost sits at the centre of its face
and shows T = g, S = 0, 1/V = 0. A Neumann ghost is the mirror image of its owner on the face's normal, d = delta n,
and shows T + q delta, S and V of its owner, with q = dT/dn outwards.
P is the cell that receives, N its neighbour across a face, Q a neighbour of N."""
_GLUE = "\N{NO-BREAK SPACE}"
# The most nested brackets at which lines are broken: those of the deepest formula that the parser accepts.
_MOST_NESTING = 50


def to_one_line(text: str) -> str:
    """The text on one line of printable characters."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def scheme_title(scheme: Scheme) -> str:
    """`name: summary`, on one line."""
    return to_one_line(f"{scheme.name}: {scheme.summary}" if scheme.summary else scheme.name)


def to_identifier(name: str) -> str:
    """A name that C and Python accept: two-hop → two_hop."""
    word = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "scheme"
    return f"scheme_{word}" if word[0].isdigit() else word


def c_comment(text: str) -> str:
    """Make text safe in a C comment, which ends at the first */; ??/ would be a backslash in C99."""
    return re.sub(r"\?(?=\?)", "? ", text.replace("*/", "* /").replace("/*", "/ *"))


def find_called_helpers(
    code: str, helpers: Iterable[str], needs: Mapping[str, tuple[str, ...]], prefix: str = ""
) -> list[str]:
    """The helper functions that code calls, and those which these need, in the order of `helpers`."""
    names = {name for name in helpers if f"{prefix}{name}(" in code}
    names.update(inner for name in tuple(names) for inner in needs.get(name, ()))
    return [name for name in helpers if name in names]


def write_header(scheme: Scheme, *, call: str, nothing: str, note: str) -> str:
    """The comment that opens a file of code: what the scheme is, how to call it, what the mesh is."""
    lines = [wrap_lines(line, first="    ", rest=" " * 12, width=112) for line in formula_lines(scheme)]
    spare = unread_geometry(scheme)
    skip = f"\n{', '.join(spare)} {'is' if len(spare) == 1 else 'are'} not read and may be {nothing}." if spare else ""
    return "\n".join([f"{scheme_title(scheme)}.", "", *lines, "", call, "", _MESH + skip, note])


def formula_lines(scheme: Scheme) -> Iterator[str]:
    """The scheme as lines of plain text."""
    several = len(scheme.stages) > 1
    for number, stage in enumerate(scheme.stages, start=1):
        if several:
            yield f"stage {number}"
        yield from (f"{'  ' if several else ''}{line}" for line in _stage(stage))
    if scheme.implicit:
        yield f"and, with F(T) = {NEXT} and theta = {write_infix(scheme.theta, PLAIN)}, the step solves"
        yield "T' - T = (1 - theta)*(F(T) - T) + theta*(F(T') - T')"
    if Hop.RING in scheme.hops():
        yield "over Q, whatever depends on N is the mean over the paths P -> N -> Q"
    if Hop.LINE in scheme.hops():
        yield "B is behind P, across the face opposite to N's; F is ahead of N, and N itself where N is a ghost"


def _stage(stage: Stage) -> Iterator[str]:
    wide = max(map(len, (*stage.messages, *stage.outputs)))
    for name, message in stage.messages.items():
        over = f"{_REDUCED[message.reduction]} {_OVER[message.hop]}"
        yield f"{name:<{wide}} = {over}:  {write_infix(message.expression, PLAIN)}"
    for name, output in stage.outputs.items():
        note = "" if name == NEXT else _GHOST[output.ghost]
        yield f"{name:<{wide}} = {write_infix(output.expression, PLAIN)}{note}"


def wrap_lines(text: str, *, first: str, rest: str, width: int) -> str:
    """Break text into lines of `width`, before operators in as few brackets as possible.

    Where that leaves longer lines, they are broken after commas too.
    """
    choices = ((depth, commas) for commas in (False, True) for depth in range(_MOST_NESTING + 1))
    for depth, commas in choices:
        glued = _glue_words(text, depth, commas=commas)
        if max(map(len, glued.split(" "))) <= width - len(rest):
            break
    wrapper = textwrap.TextWrapper(width, first, rest, break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(glued).replace(_GLUE, " ")


def _glue_words(text: str, deepest: int, *, commas: bool) -> str:
    """Keep the spaces at which lines may be broken, and those in the opening words; glue all others.

    Lines may be broken in at most `deepest` brackets: before operators and, with `commas`, after commas.
    """
    depth, out, opening = 0, [], text.rfind(":  ") + 1
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        place = text[at + 1 : at + 3] in ("+ ", "- ") or (commas and text[at - 1 : at] == ",")
        out.append(_GLUE if character == " " and at > opening and not (place and depth <= deepest) else character)
    return "".join(out)
