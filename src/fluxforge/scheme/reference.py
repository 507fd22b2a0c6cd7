"""The built-in schemes: tableaux applied to the heat equation, formulas printed in the paper, and the corrected flux.

The corrected flux is  F = α A [ (T_N − T_P)/(d·n) + ½ (∇T_P + ∇T_N)·(n − d/(d·n)) ]: the over-relaxed non-orthogonal
correction. Its gradients solve  Σ d dᵀ/δ² ∇T = Σ d (T_N − T_P)/δ², boundary faces included. No rotation changes the
correction, and it vanishes where d is along n. The formulas contain components, so that there is a corrected scheme per
dimension. Formulas of the paper are as printed, misprints included.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import sympy as sp

from fluxforge._arguments import describe_value
from fluxforge.errors import ExpressionError, SchemeError
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import COORDINATES
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.scheme._diffusion import least_squares_gradient, vector_symbols
from fluxforge.scheme._integrate import TWO_POINT, State, integrate
from fluxforge.scheme._scheme import (
    EXPLICIT,
    FAMILIES,
    Claims,
    Ghost,
    Hop,
    Message,
    Output,
    Reduction,
    Scheme,
    Stage,
    message_symbols,
    output_symbols,
)
from fluxforge.scheme._tableau import CRANK_NICOLSON, EULER, MIDPOINT, RK4, Tableau, rkl2_tableau


class SchemeBuilder:
    """Builds a scheme from text, stage by stage; each expression is parsed with only the symbols it may contain."""

    def __init__(self, equation: Equation = HEAT) -> None:
        self._equation = equation
        self._stages: list[Stage] = []
        self._earlier: tuple[str, ...] = ()

    def stage(
        self,
        messages: Mapping[str, str | tuple[Hop, str] | tuple[Hop, str, Reduction]],
        outputs: Mapping[str, str | tuple[Ghost, str]],
        *,
        where: str = "",
    ) -> "SchemeBuilder":
        """Add a stage.

        A message is its text (summed over edges), (hop, text) or (hop, text, reduction); an output is its text or
        (ghost, text).
        `where` begins the messages of errors, to name the stage of a file.
        """
        where = where or f"stage {len(self._stages) + 1}"
        for argument, parts in {"messages": messages, "outputs": outputs}.items():
            _check_parts(parts, f"{where}: {argument}")
        parsed: dict[str, Message] = {}
        for name, message in messages.items():
            hop, text, *rest = (Hop.EDGE, message) if isinstance(message, str) else message
            known = message_symbols(hop, self._earlier, self._equation)
            parsed[name] = Message(_parse_at(text, known, f"{where}, message {name!r:.60}"), hop, *rest)
        symbols = output_symbols(parsed, self._earlier, self._equation)
        done: dict[str, Output] = {}
        for name, given_output in outputs.items():
            ghost, text = (Ghost.DIRICHLET, given_output) if isinstance(given_output, str) else given_output
            done[name] = Output(_parse_at(text, symbols, f"{where}, output {name!r:.60}"), ghost)
        self._stages.append(Stage(parsed, done))
        self._earlier = (*self._earlier, *done)
        return self

    def build(self, name: str, *, summary: str = "", claims: Claims | None = None, theta: sp.Expr = EXPLICIT) -> Scheme:
        """The finished scheme; by default it has no claims."""
        claims = claims or Claims()
        return Scheme(name, tuple(self._stages), theta, summary, claims, self._equation)


def _check_parts(parts: object, where: str) -> None:
    """Raise SchemeError unless this is a mapping from names to texts, or to tuples of a hop or ghost and a text."""
    if not isinstance(parts, Mapping):
        raise SchemeError(f"{where} should be a mapping from names to formulas, got {describe_value(parts)}")
    for name, part in parts.items():
        pair = isinstance(part, tuple) and len(part) in (2, 3) and isinstance(part[0], Hop | Ghost)
        reduced = pair and len(part) == 3 and isinstance(part[0], Hop) and isinstance(part[2], Reduction)
        text = part[1] if pair and (len(part) == 2 or reduced) else part
        if not isinstance(name, str) or not isinstance(text, str):
            raise SchemeError(f"{where}, {name!r:.60}: should be a formula as text, got {describe_value(part)}")


def _parse_at(text: str, symbols: Mapping[str, sp.Symbol], where: str) -> sp.Expr:
    try:
        return parse(text, symbols)
    except ExpressionError as error:
        raise ExpressionError(f"{where}: {error}") from error


CORRECTION = "correction"
"""The name of ½ (∇T_P + ∇T_N)·(n − d/(d·n)) among the invariants of networks."""


def gradient_names(dimension: int) -> tuple[str, ...]:
    """`g_x`, `g_y` (and `g_z`): the outputs of `gradient_stage`."""
    return tuple(f"g_{axis}" for axis in COORDINATES[:dimension])


@cache
def gradient_stage(dimension: int) -> Stage:
    """The stage of the least-squares gradient of T in every cell; a ghost has its owner's."""
    axes = COORDINATES[:dimension]
    return least_squares_gradient(vector_symbols("d", axes), State(), "", axes)


def correction_text(dimension: int, normal: str = "d_n") -> str:
    """The correction as a formula of a message; `normal` is what d·n is called."""
    return " + ".join(f"(g_{axis}_P + g_{axis}_N)/2*(n_{axis} - d_{axis}/{normal})" for axis in COORDINATES[:dimension])


PLAIN_FLUX_ORDERS = {"squares": 2.0, "cross": 2.0, "equilateral": 2.0, "right": 0.0, "jittered": 0.0}
"""Order 2 where the line of centroids is perpendicular to the face; no convergence where it is not.

On unstructured meshes the error falls for as long as the generator makes locally regular triangles: no claim.
"""

NO_ORDER = dict.fromkeys(("squares", "cross", "equilateral", "right", "jittered", "irregular"), 0.0)
"""The claims of a scheme that solves another equation, and converges on no family."""

_FLUX = "alpha*A/delta*(T_N - T_P)"

MIDPOINT_PRINTED = (
    SchemeBuilder()
    .stage({"z": _FLUX}, {"half": "T + dt/(2*V)*z + dt*S"})
    .stage({"z_half": "alpha*A/delta*(half_N - half_P)"}, {"T_new": "T + dt/V*z_half + dt*S"})
    .build(
        "midpoint-printed",
        summary="the midpoint rule as the paper prints it: a whole source step in the half step",
        claims=Claims(conservative=True, time_order=1, generator=True, stable_to=2.0),
    )
)

CRANK_NICOLSON_PRINTED = (
    SchemeBuilder()
    .stage({"z": _FLUX}, {"T_new": "T - dt/V*z"})
    .build(
        "crank-nicolson-printed",
        theta=sp.Rational(1, 2),
        summary="Crank-Nicolson as the paper prints it: wrong sign, no source",
        claims=Claims(conservative=True, generator=False, space=NO_ORDER, stable_to=0.0),
    )
)

TWO_HOP_PRINTED = (
    SchemeBuilder()
    .stage(
        {"z1": _FLUX, "z2": (Hop.RING, "alpha/2*(T_Q - T_P)")},
        {"T_new": "T + dt*S + dt/V*(z1 + z2)"},
    )
    .build(
        "two-hop-printed",
        summary="the two-hop formula as the paper prints it: solves another heat equation",
        claims=Claims(conservative=True, time_order=1, generator=False, space=NO_ORDER, stable_to=2.0),
    )
)

TWO_HOP = (
    SchemeBuilder()
    .stage(
        {
            "z1": "alpha*A/delta*(T_N - T_P)",
            # χ excludes Neumann ghosts from Σw: in the half step their values follow their owners'.
            "d": "chi*alpha*A/delta",
            "z_source": "alpha*A/delta*(S_N - S_P)",
            "z2": (Hop.PATH, "dt/2*(alpha*A_PN/delta_PN)*(alpha*A_NQ/delta_NQ)/V_N*(T_Q - T_N)"),
        },
        {"T_new": "T + dt*S + dt/V*(z1 + z2 + dt/2*z_source - dt/(2*V)*d*z1)"},
    )
    .build(
        "two-hop",
        summary="one stage over directed two-hop paths, equal to midpoint",
        claims=Claims(conservative=True, time_order=2, generator=True, space=PLAIN_FLUX_ORDERS, stable_to=2.0),
    )
)


def corrected_in(dimension: int) -> Scheme:
    """The corrected scheme of heat in `dimension` dimensions; orders in space are claimed for families in the plane."""
    normal = f"({' + '.join(f'd_{axis}*n_{axis}' for axis in COORDINATES[:dimension])})"
    known = message_symbols(Hop.EDGE, gradient_names(dimension))
    flux = parse(f"alpha*A*((T_N - T_P)/{normal} + {correction_text(dimension, normal)})", known)
    new = parse("T + dt/V*z + dt*S", output_symbols(("z",), ()))
    claims = Claims(
        conservative=True,
        linear_exact=True,
        time_order=1,
        generator=True,
        space=dict.fromkeys(FAMILIES, 2.0) if dimension == 2 else {},
        stable_to=2.0,
    )
    return Scheme(
        "corrected",
        (gradient_stage(dimension), Stage({"z": Message(flux)}, {"T_new": Output(new)})),
        summary="over-relaxed non-orthogonal correction with least-squares gradients, forward Euler",
        claims=claims,
    )


CORRECTED = corrected_in(2)


PLAIN = replace(TWO_POINT, orders=PLAIN_FLUX_ORDERS)
"""The two-point flux of heat, with its claims."""


def _heat_scheme(tableau: Tableau) -> Scheme:
    return integrate(tableau, HEAT, PLAIN)


BUILT_IN: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        replace(_heat_scheme(EULER), summary="the paper's first-order scheme: two-point flux, forward Euler"),
        _heat_scheme(MIDPOINT),
        MIDPOINT_PRINTED,
        _heat_scheme(RK4),
        _heat_scheme(rkl2_tableau(8)),
        TWO_HOP,
        TWO_HOP_PRINTED,
        _heat_scheme(CRANK_NICOLSON),
        CRANK_NICOLSON_PRINTED,
        CORRECTED,
    )
}
