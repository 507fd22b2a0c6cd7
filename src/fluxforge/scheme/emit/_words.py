"""What every target says of a scheme in words: a safe title, the formula as plain text, the mesh it works on."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping

from fluxforge.scheme._scheme import Scheme, Stage
from fluxforge.scheme._symbols import NEXT, Ghost, Hop, Reduction
from fluxforge.scheme.emit._plan import unread
from fluxforge.scheme.emit._print_infix import infix, plain_dialect

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
_DEEPEST = 50


def one_line(text: str) -> str:
    """The text on one line of printable characters."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def title(scheme: Scheme) -> str:
    """`name: summary`, on one line."""
    return one_line(f"{scheme.name}: {scheme.summary}" if scheme.summary else scheme.name)


def identifier(name: str) -> str:
    """A name that C and Python accept: two-hop → two_hop."""
    word = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "scheme"
    return f"scheme_{word}" if word[0].isdigit() else word


def c_comment(text: str) -> str:
    """Text that a comment in C can hold: it ends at the first */, and ??/ is a backslash in C99."""
    return re.sub(r"\?(?=\?)", "? ", text.replace("*/", "* /").replace("/*", "/ *"))


def called_helpers(
    code: str, helpers: Iterable[str], needs: Mapping[str, tuple[str, ...]], prefix: str = ""
) -> list[str]:
    """The helper functions that code calls, and those which these need, in the order of `helpers`."""
    names = {name for name in helpers if f"{prefix}{name}(" in code}
    names.update(inner for name in tuple(names) for inner in needs.get(name, ()))
    return [name for name in helpers if name in names]


def header(scheme: Scheme, *, call: str, nothing: str, note: str) -> str:
    """The comment that opens a file of code: what the scheme is, how to call it, what the mesh is."""
    lines = [wrap_lines(line, first="    ", rest=" " * 12, width=112) for line in formula(scheme)]
    spare = unread(scheme)
    skip = f"\n{', '.join(spare)} {'is' if len(spare) == 1 else 'are'} not read and may be {nothing}." if spare else ""
    return "\n".join([f"{title(scheme)}.", "", *lines, "", call, "", _MESH + skip, note])


def formula(scheme: Scheme) -> Iterator[str]:
    """The scheme as lines of plain text."""
    several = len(scheme.stages) > 1
    for number, stage in enumerate(scheme.stages, start=1):
        if several:
            yield f"stage {number}"
        yield from (f"{'  ' if several else ''}{line}" for line in _stage(stage))
    if scheme.implicit:
        yield f"and, with F(T) = {NEXT} and theta = {infix(scheme.theta, plain_dialect(), str)}, the step solves"
        yield "T' - T = (1 - theta)*(F(T) - T) + theta*(F(T') - T')"
    if Hop.RING in scheme.hops():
        yield "over Q, whatever depends on N is the mean over the paths P -> N -> Q"
    if Hop.LINE in scheme.hops():
        yield "B is behind P, across the face opposite to N's; F is ahead of N, and N itself where N is a ghost"


def _stage(stage: Stage) -> Iterator[str]:
    wide = max(map(len, (*stage.messages, *stage.outputs)))
    for name, message in stage.messages.items():
        over = f"{_REDUCED[message.reduction]} {_OVER[message.hop]}"
        yield f"{name:<{wide}} = {over}:  {infix(message.expression, plain_dialect(), str)}"
    for name, output in stage.outputs.items():
        note = "" if name == NEXT else _GHOST[output.ghost]
        yield f"{name:<{wide}} = {infix(output.expression, plain_dialect(), str)}{note}"


def wrap_lines(text: str, *, first: str = "", rest: str = "", width: int = 100) -> str:
    """Lines broken before the outermost operators that make them fit."""
    depth = 0
    while depth < _DEEPEST and max(map(len, _glue_words(text, depth).split(" "))) > width - len(rest):
        depth += 1
    wrapper = textwrap.TextWrapper(width, first, rest, break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(_glue_words(text, depth)).replace(_GLUE, " ")


def _glue_words(text: str, deepest: int) -> str:
    """The text with spaces left only before operators in at most so many brackets, and after the opening words."""
    depth, out, opening = 0, [], text.rfind(":  ") + 1
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        before_operator = text[at + 1 : at + 3] in ("+ ", "- ") and depth <= deepest
        out.append(_GLUE if character == " " and at > opening and not before_operator else character)
    return "".join(out)
