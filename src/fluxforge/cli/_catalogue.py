"""The output of `fluxforge schemes` and `fluxforge equations`."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import sympy as sp
from rich.padding import Padding
from rich.text import Text

from fluxforge.cli._output import console, format_value, show, show_json, show_pairs, show_table
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import symbol
from fluxforge.pde._document import find as find_equation
from fluxforge.pde._equation import BUILT_IN, HEAT, Equation
from fluxforge.scheme import reference
from fluxforge.scheme._document import SPACES, find, to_document
from fluxforge.scheme._linear import Z, amplification, linear_stages
from fluxforge.scheme._scheme import FAMILIES, Claims, Ghost, Hop, Message, Reduction, Scheme, Stage
from fluxforge.scheme._tableau import TABLEAUX

# Least width of a terminal for a table; narrower ones get a paragraph per scheme.
TABLE_FROM = 90
# The index of each reduction of messages, and over what they are taken.
INDICES = {
    Hop.EDGE: ("N", "over the neighbours N of P"),
    Hop.PATH: ("NQ", "over the paths P → N → Q"),
    Hop.RING: ("Q", "over the cells Q two hops away"),
    Hop.LINE: ("BNF", "over the lines of cells B – P – N – F through the faces of P"),
}
REDUCTIONS = {Reduction.SUM: ("Σ", "sums"), Reduction.MIN: ("min", "minima"), Reduction.MAX: ("max", "maxima")}
GHOSTS = {Ghost.DIRICHLET: "the boundary's value", Ghost.OWNER: "its owner's value", Ghost.ZERO: "0"}
COLUMNS = ("scheme", "stages", "hops", "order in time", "stable to", "conserves heat", "order in space")


def list_schemes(*, as_json: bool) -> None:
    """Print the built-in schemes, and the spaces and time integrators that names of schemes combine."""
    chosen = list(reference.BUILT_IN.values())
    if as_json:
        show_json({"schemes": [_to_record(scheme) for scheme in chosen], **_list_parts()})
    else:
        _show_list(chosen)


def print_scheme(name: str, *, as_json: bool) -> None:
    """Print the formulas of a scheme, R(z), and its claims; raises InputError for an unknown name."""
    scheme = find(name)
    show_json(_to_record(scheme)) if as_json else _show_scheme(scheme)


def _to_record(scheme: Scheme) -> dict[str, Any]:
    """A scheme as a JSON document, with its hops and amplification factor R(z)."""
    factor = None if _mixes_operators(scheme) else amplification(scheme)
    more = {
        "hops": _list_hops(scheme).split(", "),
        "linear": linear_stages(scheme) is not None,
        "amplification": None if factor is None else _format_factor(factor),
    }
    return to_document(scheme) | more


def _show_list(schemes: Sequence[Scheme]) -> None:
    """Print a table with a row per scheme, or a paragraph per scheme on a narrow terminal."""
    if console().width >= TABLE_FROM:
        show_pairs((scheme.name, scheme.summary) for scheme in schemes)
        show()
        show_table(COLUMNS[:-1], [_row(scheme)[:-1] for scheme in schemes], right=COLUMNS[3:5])
        show("\norder in space, per mesh family (0: does not converge)")
        show_table(("scheme", *FAMILIES), [_space_row(scheme) for scheme in schemes], right=FAMILIES)
    else:
        for scheme in schemes:
            show(Text(scheme.name, style="bold cyan"))
            console().print(Padding(scheme.summary, (0, 0, 0, 2)))
            show_pairs((f"  {key}", value) for key, value in zip(COLUMNS[1:], _row(scheme)[1:], strict=True))
    show()
    console().print(
        "These are the claims of the schemes; a dash means no claim. `fluxforge schemes NAME` shows the formulas."
    )
    show()
    console().print("Names combine as SPACE, TIME or SPACE-TIME, as in corrected-implicit:")
    for title, parts in _list_parts().items():
        show(f"\n{title}")
        show_pairs((f"  {part['name']}", part["summary"]) for part in parts)


def _list_parts() -> dict[str, list[dict[str, str]]]:
    """The discretisations in space and the time integrators that names of schemes combine, as JSON values."""
    return {
        "spaces": [
            {"name": space.name, "summary": space.summary, "equation": space.default.name} for space in SPACES.values()
        ],
        "times": [{"name": tableau.name, "summary": tableau.summary} for tableau in TABLEAUX.values()],
    }


def _row(scheme: Scheme) -> tuple[str, ...]:
    claims = scheme.claims
    stages = f"{len(scheme.stages)}{', implicit' if scheme.implicit else ''}"
    claimed = (_format_order(claims), _format_limit(claims), _yes_or_no(claims.conservative), _format_space(claims))
    return (scheme.name, stages, _list_hops(scheme), *claimed)


def _space_row(scheme: Scheme) -> tuple[str, ...]:
    space = scheme.claims.space
    return (scheme.name, *(f"{space[family]:g}" if family in space else "-" for family in FAMILIES))


def _show_scheme(scheme: Scheme) -> None:
    console().print(Text.assemble((scheme.name, "bold cyan"), f": {scheme.summary}" if scheme.summary else ""))
    for number, stage, _ in scheme.walk():
        show(f"\nstage {number + 1}")
        show_pairs(_describe_stage(stage, last=number + 1 == len(scheme.stages)))
    show()
    show_pairs(_legend(scheme))
    show("\nclaims")
    show_pairs(_describe_claims(scheme))


def _describe_stage(stage: Stage, *, last: bool) -> Iterator[tuple[str, str]]:
    for name, message in stage.messages.items():
        yield f"  {name} = {_describe_reduction(message)[0]}", to_text(message.expression)
    for name, output in stage.outputs.items():
        ghost = "" if last else f"   (at a ghost: {GHOSTS[output.ghost]})"
        yield f"  {name} =", f"{to_text(output.expression)}{ghost}"


def _describe_reduction(message: Message) -> tuple[str, str]:
    """The sign of a reduction of messages, as Σ_N, and its meaning."""
    (sign, what), (index, over) = REDUCTIONS[message.reduction], INDICES[message.hop]
    return f"{sign}_{index}", f"{what} {over}"


def _legend(scheme: Scheme) -> Iterator[tuple[str, str]]:
    messages = [message for stage in scheme.stages for message in stage.messages.values()]
    order = list(Reduction)
    messages.sort(key=lambda message: (message.hop, order.index(message.reduction)))
    yield from dict.fromkeys(map(_describe_reduction, messages))
    if (equation := scheme.equation).unknown != "T":
        yield "T", f"the unknown {equation.unknown} of the equation {equation.name!r}"
    if scheme.implicit:
        theta = to_text(scheme.theta)
        yield f"θ = {theta}", "implicit: T' - T = (1 - θ)(F(T) - T) + θ (F(T') - T'), where F(T) is T_new above"
    yield "R(z)", _describe_factor(scheme)


def _describe_factor(scheme: Scheme) -> str:
    """A text with R(z) and a remark if no step is stable, or with the reason why there is no R(z)."""
    if linear_stages(scheme) is None:
        return "none: the step is not linear in T"
    factor = amplification(scheme)
    if factor is None:
        return "none: the scheme has no amplification factor on one cell between walls at T = 0"
    if _mixes_operators(scheme):
        return "none: the step is not a function of one operator"
    # R(z) = 1 ± z + …: with the minus sign, short steps amplify modes that should decay.
    growing = sp.diff(factor, Z).subs(Z, 0) < 0
    return _format_factor(factor) + (": no step is stable" if growing else "")


def _mixes_operators(scheme: Scheme) -> bool:
    """Whether the factor of one cell is not R(Δt G) of a mesh; not examined for formulas of three coordinates."""
    # Imported here, since it imports JAX, which the list of schemes does not need.
    from fluxforge.stepping._limit import is_one_operator

    return scheme.dimension != 3 and not is_one_operator(scheme)


def _describe_claims(scheme: Scheme) -> Iterator[tuple[str, str]]:
    claims, equation, words = scheme.claims, scheme.equation, scheme.equation.words
    solved = "the heat equation" if equation == HEAT else f"the equation {equation.name!r}"
    yield "  order in time", _format_order(claims)
    reach = "no step is stable" if claims.stable_to == 0 else "|R(z)| ≤ 1 for z from 0 down to minus this value"
    yield "  stable to", f"{_format_limit(claims)} ({reach})"
    kept = f"the {words.total} is constant if nothing crosses the walls"
    yield f"  conserves {words.exchanged}", f"{_yes_or_no(claims.conservative)} ({kept})"
    yield "  exact if T is linear", _yes_or_no(claims.linear_exact)
    yield f"  solves {solved}", _yes_or_no(claims.generator)
    yield "  order in space", _format_space(claims)


def _list_hops(scheme: Scheme) -> str:
    return ", ".join(sorted(scheme.hops()))


def _format_order(claims: Claims) -> str:
    return "-" if claims.time_order is None else str(claims.time_order)


def _format_limit(claims: Claims) -> str:
    if claims.stable_to is None:
        return "-"
    if claims.stable_to == 0:
        return "no step"
    return "unlimited" if math.isinf(claims.stable_to) else f"{claims.stable_to:.4g}"


def _yes_or_no(claim: bool | None) -> str:
    return "-" if claim is None else "yes" if claim else "no"


def _format_space(claims: Claims) -> str:
    """A text with the mesh families of each claimed order, highest first, as `2: squares, cross; 0: right`."""
    orders = sorted(set(claims.space.values()), reverse=True)
    groups = (", ".join(family for family, value in claims.space.items() if value == order) for order in orders)
    return "; ".join(f"{order:g}: {families}" for order, families in zip(orders, groups, strict=True)) or "-"


def _format_factor(factor: sp.Expr) -> str:
    """R(z) as text, with the powers of z in ascending order."""
    top, bottom = sp.fraction(sp.together(factor))
    scale = sp.Poly(bottom, Z).coeff_monomial(1) or sp.Integer(1)
    top, bottom = sp.Poly(top, Z), sp.Poly(bottom, Z)
    if bottom.is_ground:
        return _format_ascending(top, scale)
    sign = sp.sign(scale)
    above = _format_ascending(top, sign)
    return f"{above if top.is_ground else f'({above})'}/({_format_ascending(bottom, sign)})"


def _format_ascending(polynomial: sp.Poly, scale: sp.Expr) -> str:
    terms = (to_text(c / scale * Z**k) for k, c in enumerate(reversed(polynomial.all_coeffs())) if c)
    return " + ".join(terms).replace("+ -", "- ")


PARAMETER_COLUMNS = ("parameter", "meaning", "kind", "unit", "default")


def list_equations(*, as_json: bool) -> None:
    """Print the built-in equations and their parameters."""
    known = list(BUILT_IN.values())
    show_json({"equations": [_equation_record(each) for each in known]}) if as_json else _show_equations(known)


def print_equation(name: str, *, as_json: bool) -> None:
    """Print an equation in full; raises InputError for an unknown name."""
    equation = find_equation(name)
    show_json(_equation_record(equation)) if as_json else _show_equation(equation)


def _equation_record(equation: Equation) -> dict[str, Any]:
    """An equation as JSON values; units are powers of length L, time t and the unknown Θ."""
    return {
        "name": equation.name,
        "summary": equation.summary,
        "equation": equation.text,
        "unknown": equation.unknown,
        "linear": equation.linear,
        "parameters": [
            {
                "name": p.name,
                "meaning": p.meaning,
                "rank": str(p.rank),
                "where": str(p.where),
                "unit": None if p.unit is None else str(p.unit),
                "default": p.default,
            }
            for p in equation.parameters
        ],
    }


def _show_equations(equations: list[Equation]) -> None:
    show_pairs((equation.name, equation.text) for equation in equations)
    show()
    rows = [(equation.name, *row) for equation in equations for row in _parameter_rows(equation)]
    show_table(("equation", *PARAMETER_COLUMNS), rows)
    show()
    show(
        "Units are powers of length L, time t and the unknown Θ; S is the source. `fluxforge equations NAME` shows one."
    )


def _parameter_rows(equation: Equation) -> Iterator[tuple[str, ...]]:
    for p in equation.parameters:
        kind = str(p.rank) if p.where == "constant" else f"{p.rank} per {p.where}"
        if isinstance(p.default, tuple):
            default = f"({', '.join(f'{part:g}' for part in p.default)})"
        else:
            default = format_value(p.default, "g")
        yield p.name, p.meaning, kind, "-" if p.unit is None else str(p.unit), default


def _show_equation(equation: Equation) -> None:
    ends = [symbol(f"{equation.unknown}_{end}") for end in ("P", "N")]
    pairs = [
        ("name", equation.name),
        ("summary", equation.summary),
        ("equation", equation.text),
        ("unknown", f"{equation.unknown}, unit {equation.unknown_unit}"),
        ("linear", "yes" if equation.linear else "no"),
        ("two-point flux", to_text(equation.flux(*ends))),
    ]
    show_pairs(pair for pair in pairs if pair[1])
    show()
    show_table(PARAMETER_COLUMNS, list(_parameter_rows(equation)))
