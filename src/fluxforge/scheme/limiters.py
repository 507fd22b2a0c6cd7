"""Limiters φ(r, q, c) as data, and transport with limited slopes along lines of cells B – P – N – F.

r is the ratio of the upwind difference of u to the one across the face, (u_P − u_B)/(u_N − u_P) for flow from P to N,
q that of the downwind difference, (u_F − u_N)/(u_N − u_P), and c = |s| Δt A/(C V) the Courant number of the face in its
upwind cell, with the speed s and the capacity C. The exact bounds of a total-variation diminishing scheme are
0 ≤ φ ≤ min(2r/c, 2/(1 − c)), and φ = 0 for r ≤ 0, whatever else φ depends on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sympy as sp

from fluxforge.errors import SchemeError
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import BUILT_IN, Equation
from fluxforge.scheme._integrate import Axes, Prepared, Space, State
from fluxforge.scheme._scheme import STEP, Hop, Message
from fluxforge.scheme.fluxes import (
    diffusive_flux,
    exact_flux,
    is_linear,
    maximum,
    minimum,
    normal_velocity,
    refuse_without_transport,
    substitute,
    transport_slope,
    transported_at,
)

R, Q, C = symbol("r"), symbol("q"), symbol("c")
"""The variables of a limiter: the ratios of the upwind and of the downwind difference, and the Courant number."""

# Added to the square of a difference: r keeps its sign and shrinks, so that a bounded φ stays within its bounds.
_SQUARED = sp.Float(1e-30)
# In φ, c is kept this far from 0 and 1, where 2r/c and 2/(1 − c) are not finite; with the number above, the
# denominator of 2r/c stays within the range of single precision.
LEAST_COURANT = sp.Float(1e-6)


@dataclass(frozen=True)
class Limiter:
    """φ as a formula of `R`, `Q` and `C`.

    `symmetric`: φ(r)/r = φ(1/r), so that a wave and its mirror image are limited alike. `provenance`: the run that a
    discovered limiter comes from.
    """

    name: str
    summary: str
    phi: sp.Expr
    symmetric: bool = False
    provenance: str = ""

    @property
    def one_step(self) -> bool:
        """Whether φ depends on the Courant number, so that it belongs to forward Euler."""
        return C in self.phi.free_symbols


def _positive_part(formula: sp.Expr) -> sp.Expr:
    """The formula where it is positive, and 0 elsewhere."""
    return maximum(sp.S.Zero, formula)


_TWO = sp.Integer(2)
_RUN = (
    "--preset paper, seed 0, on one H200, at the commit before the formula was built in; the document of the run was "
    "not kept; measured again on two CPU cores (results/limiter.json); bounds hold by the form of the formula; "
    "Lipschitz-continuous: "
)

LIMITERS: Mapping[str, Limiter] = {
    limiter.name: limiter
    for limiter in (
        Limiter("minmod", "minmod limiter", _positive_part(minimum(R, sp.S.One)), symmetric=True),
        Limiter("van-leer", "limiter of van Leer", 2 * _positive_part(R) / (1 + _positive_part(R)), symmetric=True),
        Limiter("van-albada", "limiter of van Albada", _positive_part(R) * (1 + R) / (1 + R**2), symmetric=True),
        Limiter("mc", "monotonised central limiter", _positive_part(minimum(2 * R, (1 + R) / 2, _TWO)), symmetric=True),
        Limiter("koren", "third-order limiter of Koren", _positive_part(minimum(2 * R, (1 + 2 * R) / 3, _TWO))),
        Limiter(
            "umist", "UMIST limiter", _positive_part(minimum(2 * R, (1 + 3 * R) / 4, (3 + R) / 4, _TWO)), symmetric=True
        ),
        Limiter(
            "superbee",
            "superbee limiter",
            maximum(sp.S.Zero, minimum(2 * R, sp.S.One), minimum(R, _TWO)),
            symmetric=True,
        ),
        Limiter(
            "cfl-superbee",
            "superbee limiter that depends on the Courant number",
            maximum(sp.S.Zero, minimum(2 * R / C, sp.S.One), minimum(R, 2 / (1 - C))),
        ),
        Limiter(
            "cfl-mc",
            "monotonised central limiter that depends on the Courant number",
            _positive_part(minimum(2 * R / C, (1 + R) / 2, 2 / (1 - C))),
        ),
        Limiter(
            "arora-roe",
            "limiter of Arora and Roe, third order",
            _positive_part(minimum(2 * R / C, 1 + (1 + C) * (R - 1) / 3, 2 / (1 - C))),
        ),
        Limiter("ultrabee", "limiter at its upper bound (ultrabee)", _positive_part(minimum(2 * R / C, 2 / (1 - C)))),
        Limiter(
            "discovered-jump",
            "discovered limiter that jumps from a line to its bound",
            parse(
                "max(0, min(min(2*r/c, 2/(1 - c)), "
                "where((0.314 + 0.001*c + 0.56*c**2 < r)*(r < 1.193 + 1.278*c + 1.319*c**2), "
                "1 + (0.322 + 0.365*c)*(r - 1), 2/(1 - c))))",
                ("r", "q", "c"),
            ),
            provenance=f"fluxforge discover limiter {_RUN}no",
        ),
        Limiter(
            "discovered-ramp",
            "discovered limiter with ramps from a line to its bound",
            parse(
                "max(0, min(min(2*r/c, 2/(1 - c)), 1 + (0.397 + 0.206*c)*(r - 1) + max(max(0, "
                "1.619*(0.316 + 0.701*c - 0.131*c**2 - r)/c), 1.158*(r - 1.037 - 0.674*c - 1.237*c**2)/(1 - c))))",
                ("r", "q", "c"),
            ),
            provenance=f"fluxforge discover limiter {_RUN}yes",
        ),
        Limiter(
            "discovered-downwind",
            "discovered limiter that sees the downwind difference too",
            parse(
                "max(0, min(min(2*r/c, 2/(1 - c)), 1 + (0.16 + 0.342*c)*(r - 1) "
                "+ (-0.176 + 0.003*c)*(min(2.215, max(-0.215, q)) - 1) + max(max(0, "
                "1.434*(0.9385 + 0.359*c + 0.287*c**2 - 1.311*q/(1 + abs(q)) - r)/c), "
                "1.01*(r - 1.856 - 2.704*c - 0.53*c**2 - 0.218*q/(1 + abs(q)))/(1 - c))))",
                ("r", "q", "c"),
            ),
            provenance=f"fluxforge discover limiter-downwind {_RUN}yes",
        ),
    )
}
"""The limiters, by name."""


def limiter_of(name: str, phi: sp.Expr, summary: str = "") -> Limiter:
    """A limiter from its formula φ; SchemeError where φ contains other symbols than `R`, `Q` and `C`."""
    if stray := sorted(map(str, phi.free_symbols - {R, Q, C})):
        raise SchemeError(f"limiter {name!r} contains {stray[0]}: it is a formula of r, q and c")
    return Limiter(name, summary or f"limiter {name}", phi)


def limited_space(limiter: Limiter) -> Space:
    """Transport with this limiter along lines of cells.

    With forward Euler, Godunov's flux plus ½ |s| (1 − c) φ(r, c) (u_N − u_P), s = a (f(N) − f(P))/(N − P): for linear
    transport the flux-limited scheme of Lax and Wendroff. With a method of several stages, Godunov's flux (Rusanov's
    where the points with f′ = 0 are not known) of the values u_P + ½ φ(r) (u_N − u_P) and its mirror image on either
    side of the face; φ may then not depend on c. Differences are those of uniform rows of cells.
    """

    def prepare(equation: Equation, state: State, tag: str, axes: Axes) -> Prepared:
        check_stages(limiter, tag)
        rear, front = (_difference(state, *ends) for ends in (("_B", "_P"), ("_N", "_F")))
        face = LimitedFace(equation, state, limiter, rear, front)
        flux = face.reconstructed_flux() if tag else face.corrected_flux()
        return Prepared((), Message(-symbol("A") * (flux + face.diffusion()), Hop.LINE))

    return Space(
        limiter.name,
        f"slopes along lines of cells with the {limiter.summary}",
        prepare,
        refuse=refuse_without_transport,
        default=BUILT_IN["advection"],
        linear=False,
        centred=True,
    )


def check_stages(limiter: Limiter, tag: str) -> None:
    """Raise SchemeError where φ depends on c and the method has several stages, whose tags are not empty."""
    if tag and limiter.one_step:
        raise SchemeError(
            f"limiter {limiter.name!r} depends on the Courant number of a step: use it with forward Euler"
        )


Keep = Callable[[sp.Expr, sp.Expr, sp.Expr], sp.Expr]
"""A bound on the step of u from the upwind cell to the face, counted in the direction from P to N: a function of that
step and of the weights of P and N as upwind cells, 1 and 0 or 0 and 1."""


def keep_all(step: sp.Expr, from_P: sp.Expr, from_N: sp.Expr) -> sp.Expr:
    """The whole step, without a bound."""
    return step


class LimitedFace:
    """The flux of one limiter between P and N.

    `rear` and `front` are the differences of u behind P and ahead of N, each over the distance from P to N.
    """

    def __init__(
        self, equation: Equation, state: State, limiter: Limiter, rear: sp.Expr, front: sp.Expr, keep: Keep = keep_all
    ) -> None:
        self.equation, self.phi, self.keep = equation, limiter.phi, keep
        self.P, self.N, self.jump = state.at("_P"), state.at("_N"), state.jump
        self.rear, self.front = rear, front

    def diffusion(self) -> sp.Expr:
        """The diffusive part of the equation's two-point flux."""
        return diffusive_flux(self.equation, self.P, self.N, self.jump)

    def corrected_flux(self) -> sp.Expr:
        """Godunov's flux plus ½ |s| (1 − c) φ (u_N − u_P), the limited part of the correction to second order."""
        speed = self.speed()
        from_P, from_N = ((1 + sp.sign(speed)) / 2, (1 - sp.sign(speed)) / 2)
        inverse = from_P / self._content("P") + from_N / self._content("N")
        courant = sp.Abs(speed) * symbol(STEP) * symbol("A") * inverse
        within = minimum(maximum(courant, LEAST_COURANT), 1 - LEAST_COURANT)
        phi = self._limit(from_P * self.rear + from_N * self.front, from_P * self.front + from_N * self.rear, within)
        base = exact_flux(self.equation).formula(self.equation, self.P, self.N, self.jump)
        return base + sp.Abs(speed) * self.keep((1 - courant) * phi * self.jump / 2, from_P, from_N)

    def reconstructed_flux(self) -> sp.Expr:
        """Godunov's flux of the reconstructed values on either side of the face."""
        one, no = sp.S.One, sp.S.Zero
        left = self.P + self.keep(self._limit(self.rear, self.front, no) * self.jump / 2, one, no)
        right = self.N - self.keep(self._limit(self.front, self.rear, no) * self.jump / 2, no, one)
        return exact_flux(self.equation).formula(self.equation, left, right, right - left)

    def _limit(self, upwind: sp.Expr, downwind: sp.Expr, c: sp.Expr) -> sp.Expr:
        r, q = (each * self.jump / (self.jump**2 + _SQUARED) for each in (upwind, downwind))
        return substitute(self.phi, {R: r, Q: q, C: c})

    def _content(self, end: str) -> sp.Expr:
        """C V of the cell at one end."""
        u = self.P if end == "P" else self.N
        return self.equation.at_cell(self.equation.capacity, u, end) * symbol(f"V_{end}")

    def speed(self) -> sp.Expr:
        """The speed of the jump between P and N: a (f(N) − f(P))/(N − P), divided exactly where that is possible."""
        a, f, u = normal_velocity(self.equation), self.equation.transported, self.equation.u
        if is_linear(f, u):
            return a * transport_slope(self.equation, self.P)
        p, n = symbol("end_P"), symbol("end_N")
        quotient = sp.cancel((f.xreplace({u: n}) - f.xreplace({u: p})) / (n - p))
        if f.is_rational_function(u):
            return a * quotient.xreplace({p: self.P, n: self.N})
        rise = transported_at(self.equation, self.N) - transported_at(self.equation, self.P)
        return a * rise * self.jump / (self.jump**2 + _SQUARED)


def _difference(state: State, first: str, second: str) -> sp.Expr:
    """The state at the second end less that at the first, term by term."""
    terms = (weight * (symbol(f"{name}{second}") - symbol(f"{name}{first}")) for weight, name in state.terms)
    return sp.Add(*terms)
