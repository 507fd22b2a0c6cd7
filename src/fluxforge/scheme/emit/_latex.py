r"""A scheme as a LaTeX `aligned` block."""

import re
from collections.abc import Callable, Iterator

import sympy as sp

from fluxforge.expression._print import PRODUCT
from fluxforge.pde._parameter import Rank
from fluxforge.scheme._scheme import GEOMETRY, NEXT, Ghost, Hop, Scheme, Stage, constants
from fluxforge.scheme.emit._dialects import Latex, Letter, latex_value
from fluxforge.scheme.emit._plan import Arguments, all_expressions, scheme_title, symbol_names

_SUMS = {
    Hop.EDGE: r"\sum_{N\in\mathcal{N}_1(P)}",
    Hop.PATH: r"\sum_{P\to N\to Q}",
    Hop.RING: r"\sum_{Q\in\mathcal{N}_2(P)}",
    Hop.LINE: r"\sum_{N\in\mathcal{N}_1(P)}",
}
_LETTERS = {"dt": r"\Delta t", "alpha": r"\alpha", "delta": r"\delta", "chi": r"\chi"}
_GREEK = re.compile("alpha|beta|gamma|epsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|rho|sigma|tau|phi|psi|omega")
_WHERE = {
    Hop.EDGE: "N_1(P): the nodes across the faces of P, ghosts included; n and d point from P to N.",
    Hop.PATH: "P -> N -> Q: N a cell across a face of P, Q any node across a face of N, P and ghosts included.",
    Hop.RING: "N_2(P): the distinct cells two faces from P; an overline is the mean over the paths P -> N -> Q.",
    Hop.LINE: "B - P - N - F: a line of cells, B behind P, F ahead of N in N_1(P); F = N where N is a ghost.",
}
_GHOST_WORDS = {Ghost.OWNER: "shows its owner's value", Ghost.ZERO: "shows 0"}
# The most letters per line that fit into a column of text.
_MOST_LETTERS = 62


def emit_latex(scheme: Scheme) -> str:
    r"""`\[ \begin{aligned} … \end{aligned} \]`: a line per message and output. Needs amsmath."""
    rows = [row for stage in scheme.stages for row in _stage(stage, scheme)]
    if scheme.implicit:
        rows.append(_theta(scheme))
    body = " \\\\\n".join(rows)
    return "\n".join([*_comments(scheme), r"\[", r"\begin{aligned}", body, r"\end{aligned}", r"\]", ""])


def formula_latex(expression: sp.Expr) -> str:
    r"""An expression outside a scheme, its symbols set by their names alone: T_N, z1 and T_new as T_N, z_1, T^{n+1}."""
    return Latex(_free_letter).write(expression)


def _comments(scheme: Scheme) -> Iterator[str]:
    yield f"% {scheme_title(scheme)}."
    yield "% Needs the package amsmath. P receives, N is its neighbour across a face."
    yield from (f"% {_WHERE[hop]}" for hop in Hop if hop in scheme.hops())
    yield "% Ghosts: Dirichlet shows T = g, S = 0, 1/V = 0; Neumann shows T_P + q delta, S_P, V_P, and chi = 0 there."
    yield from (f"% {words}." for words in _invariants(scheme))
    for rule, words in _GHOST_WORDS.items():
        shown = [name for stage in scheme.stages for name, output in stage.outputs.items() if output.ghost is rule]
        if shown:
            yield f"% Of {', '.join(shown)} a Dirichlet ghost {words}."


def _invariants(scheme: Scheme) -> Iterator[str]:
    """The meanings of the letters of products with n and of tangential parts that the scheme contains."""
    present = {name.removesuffix("_PN").removesuffix("_NQ") for name in symbol_names(all_expressions(scheme.stages))}
    vectors = ["d", *(p.name for p in scheme.equation.parameters if p.rank is Rank.VECTOR)]
    meanings = {f"{v}_n": f"{v}.n" for v in vectors} | {f"{v}_t": f"|{v} - ({v}.n) n|" for v in vectors}
    for p in scheme.equation.parameters:
        if p.rank is Rank.TENSOR:
            meanings |= {f"{p.name}_nn": f"n.({p.name} n)", f"{p.name}_nt": f"|{p.name} n - (n.({p.name} n)) n|"}
            meanings |= {name: f"({p.name} n)_{name[-1]}" for name in p.conormal_names}
    for name, meaning in meanings.items():
        if name in present:
            head, *tail = name.split("_")
            yield f"{head}_{{{','.join(['PN', *tail])}}} = {meaning}"


def _stage(stage: Stage, scheme: Scheme) -> Iterator[str]:
    implicit = scheme.implicit
    for name, message in stage.messages.items():
        latex = Latex(_message_letters(message.hop, scheme))
        left = _field_letter(name, "P", implicit=implicit).text
        over = _SUMS[message.hop].replace("sum", str(message.reduction))
        yield f"{left} &= {over} {_break_lines(latex, message.expression, inside=True)}"
    for name, output in stage.outputs.items():
        latex = Latex(lambda symbol_name: _node_letter(symbol_name, scheme))
        left = "F_P(T)" if implicit and name == NEXT else _field_letter(name, "P", implicit=implicit).text
        yield f"{left} &= {_break_lines(latex, output.expression, inside=False)}"


def _break_lines(latex: Latex, expression: sp.Expr, *, inside: bool) -> str:
    """A formula, its longest sum on several lines if it is too long for one; `inside` a sum over neighbours."""
    whole = latex.write(expression) if not inside else latex.text(expression, PRODUCT)
    outside, total = _split_at_sum(expression)
    if _width(whole) <= _MOST_LETTERS or not total.is_Add:
        return whole
    first, *rest = latex.terms(total)
    lines, before = [first], _width(latex.write(outside)) if inside else 0
    for term in rest:
        if before + _width(lines[-1] + term) > _MOST_LETTERS:
            lines, before = [*lines, term], 0
        else:
            lines[-1] += f" {term}"
    text = " \\\\\n&\\quad {} ".join(lines)
    if expression.is_Add and not inside:
        return text
    return (latex.write(outside) if outside != 1 else "") + rf"\biggl[{text}\biggr]"


def _split_at_sum(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """A product as the factors outside its largest sum, and that sum; without a sum, 1 and the whole expression."""
    sums = sorted((f for f in sp.Mul.make_args(expression) if f.is_Add), key=lambda f: len(str(f)))
    if not sums:
        return sp.Integer(1), expression
    return sp.Mul(*(f for f in sp.Mul.make_args(expression) if f != sums[-1])), sums[-1]


def _width(text: str) -> int:
    """The approximate width of a formula in letters; for a fraction the sum of both halves, which is an upper bound."""
    return len(re.sub(r"\\[A-Za-z]+|[\\{}_^, ]", "", text))


def _theta(scheme: Scheme) -> str:
    before, after = (rf"\left(F_P(T^{{{time}}}) - T_P^{{{time}}}\right)" for time in ("n", "n+1"))
    right = rf"(1-\theta){before} + \theta{after}, \qquad \theta = {latex_value(scheme.theta)}"
    return f"T_P^{{n+1}} - T_P^{{n}} &= {right}"


def _message_letters(hop: Hop, scheme: Scheme) -> Callable[[str], Letter]:
    arguments = Arguments.of(scheme)

    def letter(name: str) -> Letter:
        if name in arguments.constants:
            return _constant_letter(name)
        if name in GEOMETRY[hop]:
            return _geometry(name, hop)
        field, _, end = name.rpartition("_")
        if name in arguments.slots or field in arguments.slots:
            head, *tail = (name if name in arguments.slots else field).split("_")
            leg = "PN" if name in arguments.slots else end
            return Letter(f"{_head(head)}_{{{','.join([leg, *tail])}}}", coefficient=True)
        symbol = _field_letter(field, end, implicit=scheme.implicit)
        return _mean(symbol) if hop is Hop.RING and end == "N" else symbol

    return letter


def _geometry(name: str, hop: Hop) -> Letter:
    """A_{PN}, δ_{NQ}, n_{PN,x}, d_{PQ,y}; averaged over paths in a ring."""
    leg = next((leg for leg in ("PN", "NQ", "PQ") if leg in name), "PN")
    base, _, component = name.replace(f"_{leg}", "").partition("_")
    letter = Letter(f"{_LETTERS.get(base, base)}_{{{leg}{f',{component}' if component else ''}}}", coefficient=True)
    return _mean(letter) if hop is Hop.RING and leg != "PQ" else letter


def _mean(letter: Letter) -> Letter:
    return Letter(rf"\overline{{{letter.text}}}", coefficient=letter.coefficient)


def _node_letter(name: str, scheme: Scheme) -> Letter:
    known = name in constants(scheme.equation)
    return _constant_letter(name) if known else _field_letter(name, "P", implicit=scheme.implicit)


def _free_letter(name: str) -> Letter:
    if name == NEXT:
        return Letter("T^{n+1}", raised=True)
    head, *tail = name.split("_")
    letters, digits = re.fullmatch(r"(.*?)(\d*)", head).groups()  # type: ignore[union-attr]
    below = ",".join([*([digits] if digits else []), *(part if part.isupper() else _subscript(part) for part in tail)])
    base = _LETTERS.get(letters) or _head(letters)
    return Letter(f"{base}_{{{below}}}" if below else base, coefficient=letters not in ("T", "S", "z"))


def _constant_letter(name: str) -> Letter:
    return Letter(_LETTERS.get(name) or _head(name), coefficient=True)


def _field_letter(name: str, end: str, *, implicit: bool) -> Letter:
    r"""A field, sum or output at one node: T_P^n, z_{1,P}, m_{xx,P}, \mathrm{rate}_{0,N}."""
    raised = {} if implicit else {"T": "n", "half": "n+1/2"}
    if name in raised or name == NEXT:
        return Letter(f"T_{end}^{{{raised.get(name, 'n+1')}}}", raised=True)
    head, *tail = name.split("_")
    letters, digits = re.fullmatch(r"(.*?)(\d*)", head).groups()  # type: ignore[union-attr]
    below = [*([digits] if digits else []), *map(_subscript, tail), end]
    text = f"{_head(letters)}_{{{','.join(below)}}}" if len(below) > 1 else f"{_head(letters)}_{end}"
    return Letter(text, coefficient=name == "V")


def _head(letters: str) -> str:
    if _GREEK.fullmatch(letters):
        return rf"\{letters}"
    return letters if len(letters) == 1 else rf"\mathrm{{{letters}}}"


def _subscript(part: str) -> str:
    return part if len(part) == 1 or set(part) <= set("xyz0123456789") else rf"\mathrm{{{part}}}"
