"""Numerical fluxes F(u_P, u_N) of transport a f(u) through a face, as algebra: one record per flux.

F is the flux out of P along n: F(u, u) = f(u) a·n, and F changes its sign if the ends are exchanged and n is reversed.
Formulas over an interval need the points where f′ = 0; SymPy finds them once per equation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise

import sympy as sp

from fluxforge.errors import SchemeError
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation, differentiate
from fluxforge.scheme._scheme import STEP

# Distances from a critical point at which the sign of f′ is tried, since functions such as log(u) end near some.
_DISTANCES = tuple(sp.Rational(1, 4**k) for k in range(6))


@cache
def is_linear(f: sp.Expr, u: sp.Symbol) -> bool:
    """Whether f is affine in u."""
    return bool(sp.simplify(sp.diff(f, u, 2)) == 0)


@cache
def critical_points(f: sp.Expr, u: sp.Symbol) -> tuple[sp.Expr, ...]:
    """The real u with f′(u) = 0, in increasing order where they are numbers.

    Raises SchemeError where SymPy does not find them all, where there are infinitely many, and where it depends on
    parameters whether they are real.
    """
    slope = sp.nsimplify(sp.diff(f, u), rational=True)
    top, bottom = sp.fraction(sp.together(slope))
    zeros = _roots(top, u) if top.is_polynomial(u) else _solutions(slope, u)
    if zeros is None or not all(point.is_real for point in zeros):
        raise SchemeError(
            f"the points where the derivative of f = {f} vanishes are not known (rusanov does not need them)"
        )
    points = {_round_irrational(point) for point in zeros if bottom.xreplace({u: point}) != 0}
    if all(point.is_number for point in points):
        return tuple(sorted(points, key=float))
    return tuple(sorted(points, key=str))


def _roots(top: sp.Expr, u: sp.Symbol) -> list[sp.Expr] | None:
    poly = sp.Poly(top, u)
    if poly.degree() <= 0:
        return []
    if all(coefficient.is_Rational for coefficient in poly.all_coeffs()):
        return list(sp.real_roots(poly))
    multiplicities = sp.roots(poly)
    return list(multiplicities) if sum(multiplicities.values()) == poly.degree() else None


def _solutions(slope: sp.Expr, u: sp.Symbol) -> list[sp.Expr] | None:
    zeros = sp.solveset(slope, u, sp.S.Reals)
    return list(zeros) if isinstance(zeros, sp.FiniteSet) else [] if zeros is sp.S.EmptySet else None


def _round_irrational(point: sp.Expr) -> sp.Expr:
    """A rational as it is, another number as the nearest double: roots of polynomials may have no formula."""
    return point if point.is_Rational or not point.is_number else sp.Float(float(point.evalf(25)))


@cache
def slope_signs(f: sp.Expr, u: sp.Symbol) -> tuple[sp.Expr, ...]:
    """The sign of f′ left of the first critical point, between neighbours, and right of the last.

    A formula where it depends on parameters. Raises SchemeError for several critical points that depend on parameters,
    whose order is not known.
    """
    points = critical_points(f, u)
    if len(points) > 1 and not all(point.is_number for point in points):
        raise SchemeError(f"the order of the points where the derivative of f = {f} vanishes depends on parameters")
    if not points:
        return (_sign(f, u, [sp.S.Zero, *_DISTANCES]),)
    inner = [[(left + right) / 2] for left, right in pairwise(points)]
    before = [points[0] - distance for distance in _DISTANCES]
    after = [points[-1] + distance for distance in _DISTANCES]
    return tuple(_sign(f, u, places) for places in (before, *inner, after))


def _sign(f: sp.Expr, u: sp.Symbol, places: list[sp.Expr]) -> sp.Expr:
    """The sign of f′ at the first place where it is real; +1 if it is real nowhere, where f is not defined."""
    slope = sp.diff(f, u)
    for place in places:
        value = sp.simplify(slope.xreplace({u: place}))
        if not value.is_number or (value.is_real and value.is_finite):
            return sp.sign(value)
    return sp.S.One


LEAST_DENOMINATOR = sp.Float(1e-30)
"""A tiny positive number that guards divisions by 0, in single precision too."""

# The least argument of tanh, so that x/tanh(x) is not 0/0: below it, x/tanh(x) is 1 in double precision.
_LEAST_ARGUMENT = sp.Float(1e-8)


@dataclass(frozen=True)
class NumericalFlux:
    """A two-point flux of transport.

    - `formula(equation, P, N, jump)`: F without diffusion, or with it where `diffuses`; `jump` is N − P as it should
      appear in the formula;
    - `refuse(equation)`: why it does not serve an equation, or None;
    - `monotone`: ∂F/∂u_P ≥ 0 ≥ ∂F/∂u_N, claimed; `order`: in space, on uniform rows of cells, where u is smooth;
    - `one_step`: the formula contains Δt, so that it belongs to forward Euler.
    """

    name: str
    summary: str
    formula: Callable[[Equation, sp.Expr, sp.Expr, sp.Expr], sp.Expr]
    order: int
    monotone: bool
    refuse: Callable[[Equation], str | None]
    diffuses: bool = False
    one_step: bool = False

    def of(self, equation: Equation, P: sp.Expr, N: sp.Expr, jump: sp.Expr | None = None) -> sp.Expr:
        """The whole flux out of P, diffusion as in the equation's two-point flux; SchemeError where it is refused."""
        if (reason := self.refuse(equation)) is not None:
            raise SchemeError(f"flux {self.name!r} cannot be used with the equation {equation.name!r}: {reason}")
        jump = N - P if jump is None else jump
        carried = self.formula(equation, P, N, jump)
        return carried if self.diffuses else carried + diffusive_flux(equation, P, N, jump)


def maximum(*parts: sp.Expr) -> sp.Expr:
    """The maximum, unevaluated: SymPy compares every pair of arguments otherwise."""
    return sp.Max(*parts, evaluate=False) if len(set(parts)) > 1 else parts[0]


def minimum(*parts: sp.Expr) -> sp.Expr:
    """The minimum, unevaluated."""
    return sp.Min(*parts, evaluate=False) if len(set(parts)) > 1 else parts[0]


def substitute(formula: sp.Expr, values: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
    """The formula with symbols replaced, its minima, maxima and moduli left unevaluated."""
    if formula in values:
        return values[formula]
    if not formula.args:
        return formula
    parts = [substitute(part, values) for part in formula.args]
    if isinstance(formula, sp.Min | sp.Max):
        return (minimum if isinstance(formula, sp.Min) else maximum)(*parts)
    # SymPy takes very long to look for signs in fractions.
    return sp.Abs(*parts, evaluate=False) if isinstance(formula, sp.Abs) else formula.func(*parts)


@cache
def _without_transport(equation: Equation) -> Equation:
    return replace(equation, transported=sp.S.Zero, velocity=None, two_point=None)


def diffusive_flux(equation: Equation, P: sp.Expr, N: sp.Expr, jump: sp.Expr) -> sp.Expr:
    """−K (N − P)/δ as in the equation's two-point flux."""
    return _without_transport(equation).flux(P, N, jump)


def normal_velocity(equation: Equation) -> sp.Symbol:
    """The symbol of a·n."""
    assert equation.velocity is not None
    return symbol(equation.parameter(equation.velocity).normal_name)


def transported_at(equation: Equation, u: sp.Expr) -> sp.Expr:
    """f(u)."""
    return equation.transported.xreplace({equation.u: u})


def transport_slope(equation: Equation, u: sp.Expr) -> sp.Expr:
    """f′(u)."""
    return differentiate(equation.transported, equation.u).xreplace({equation.u: u})


def refuse_without_transport(equation: Equation) -> str | None:
    """The reason "it has no transport", or None for an equation with transport."""
    return None if equation.velocity is not None else "it has no transport"


def _refuse_nonlinear(equation: Equation) -> str | None:
    if equation.velocity is not None and not is_linear(equation.transported, equation.u):
        return f"f = {equation.transported} is not linear in {equation.unknown} (godunov works for any f)"
    return refuse_without_transport(equation)


def _refuse_unknown(needed: Callable[[sp.Expr, sp.Symbol], object], equation: Equation) -> str | None:
    """Why a flux does not serve an equation: it has no transport, or `needed(f, u)` raises SchemeError; else None."""
    if equation.velocity is None:
        return refuse_without_transport(equation)
    try:
        needed(equation.transported, equation.u)
    except SchemeError as error:
        return str(error)
    return None


_refuse_unsolved = partial(_refuse_unknown, critical_points)
_refuse_unordered = partial(_refuse_unknown, slope_signs)


def _refuse_not_both(equation: Equation) -> str | None:
    if equation.diffusion == 0:
        return "it has no diffusion"
    if equation.u in equation.diffusion.free_symbols:
        return f"its diffusion depends on {equation.unknown}"
    return _refuse_nonlinear(equation)


def _mean(equation: Equation, P: sp.Expr, N: sp.Expr) -> sp.Expr:
    return normal_velocity(equation) * (transported_at(equation, P) + transported_at(equation, N)) / 2


def _central(equation: Equation, P: sp.Expr, N: sp.Expr, jump: sp.Expr) -> sp.Expr:
    return _mean(equation, P, N)


def _upwind(equation: Equation, P: sp.Expr, N: sp.Expr, jump: sp.Expr) -> sp.Expr:
    speed = sp.Abs(normal_velocity(equation)) * sp.Abs(transport_slope(equation, P))
    return _mean(equation, P, N) - speed * jump / 2


def _rusanov(equation: Equation, P: sp.Expr, N: sp.Expr, jump: sp.Expr) -> sp.Expr:
    speeds = [sp.Abs(transport_slope(equation, end)) for end in (P, N)]
    return _mean(equation, P, N) - sp.Abs(normal_velocity(equation)) * maximum(*speeds) * jump / 2


def _lax_wendroff(equation: Equation, P: sp.Expr, N: sp.Expr, jump: sp.Expr) -> sp.Expr:
    """½ a (f(P) + f(N)) − Δt/(2 c δ) a² f′(½(P + N)) (f(N) − f(P))."""
    f, u = equation.transported, equation.u
    rise = differentiate(f, u) * jump if is_linear(f, u) else transported_at(equation, N) - transported_at(equation, P)
    capacity = sp.Add(*(equation.at_cell(equation.capacity, end, at) for end, at in ((P, "P"), (N, "N")))) / 2
    steepness = transport_slope(equation, (P + N) / 2) * normal_velocity(equation) ** 2
    return _mean(equation, P, N) - symbol(STEP) * steepness * rise / (2 * capacity * symbol("delta"))


def _godunov(equation: Equation, P: sp.Expr, N: sp.Expr, jump: sp.Expr) -> sp.Expr:
    """The flux of the exact Riemann problem: the least a f over [P, N] where P ≤ N, the largest over [N, P] otherwise.

    For a convex f with one point s where f′ = 0 that is max(f(max(P, s)), f(min(N, s))) for a > 0, with P and N
    exchanged for a < 0, and likewise for a concave one.
    """
    f, u, a = equation.transported, equation.u, normal_velocity(equation)
    if is_linear(f, u):
        return _upwind(equation, P, N, jump)
    points, bend = critical_points(f, u), sp.diff(f, u, 2)
    if len(points) == 1 and bend.is_number and bend != 0:
        outer, inner = (maximum, minimum) if bend > 0 else (minimum, maximum)

        def riemann(left: sp.Expr, right: sp.Expr) -> sp.Expr:
            return outer(
                transported_at(equation, outer(left, points[0])), transported_at(equation, inner(right, points[0]))
            )

        return maximum(a, sp.S.Zero) * riemann(P, N) + minimum(a, sp.S.Zero) * riemann(N, P)
    low, high = minimum(P, N), maximum(P, N)
    inside = [maximum(low, minimum(high, point)) for point in points]
    values = [a * transported_at(equation, at) for at in (P, N, *inside)]
    least, most = minimum(*values), maximum(*values)
    return (least + most) / 2 - sp.sign(jump) * (most - least) / 2


def _engquist_osher(equation: Equation, P: sp.Expr, N: sp.Expr, jump: sp.Expr) -> sp.Expr:
    """½ a (f(P) + f(N)) − ½ |a| ∫ |f′| du from P to N, the integral being W(N) − W(P), W = Σ ± f(u clipped)."""
    f, u = equation.transported, equation.u
    if is_linear(f, u):
        return _upwind(equation, P, N, jump)
    points, signs = critical_points(f, u), slope_signs(f, u)

    def variation(end: sp.Expr) -> sp.Expr:
        total = sp.S.Zero
        for k, rising in enumerate(signs):
            clipped = end if k == 0 else maximum(end, points[k - 1])
            total += rising * transported_at(equation, clipped if k == len(points) else minimum(clipped, points[k]))
        return total

    return _mean(equation, P, N) - sp.Abs(normal_velocity(equation)) * (variation(N) - variation(P)) / 2


def _scharfetter_gummel(equation: Equation, P: sp.Expr, N: sp.Expr, jump: sp.Expr) -> sp.Expr:
    """K/δ (B(−Pe) u_P − B(Pe) u_N), B(x) = x/(eˣ − 1), Pe = a f′ δ/K, as the mean less ½ |a f′| coth(|Pe|/2) (N − P).

    B(x) = ½x coth(½x) − ½x; coth has neither the overflow of eˣ nor the cancellation of eˣ − 1. With q = |Pe|/2 the
    product |a f′| δ/2 · coth(q) is K q/tanh(q): K as q → 0, and |a f′| δ/2, which is upwind, as K → 0.
    """
    delta = symbol("delta")
    K = -diffusive_flux(equation, P, N, delta)
    half = sp.Abs(normal_velocity(equation)) * sp.Abs(transport_slope(equation, P)) * delta / 2
    effective = maximum(half, _LEAST_ARGUMENT * K) / sp.tanh(
        maximum(half / maximum(K, LEAST_DENOMINATOR), _LEAST_ARGUMENT)
    )
    return _mean(equation, P, N) - effective * jump / delta


FLUXES: Mapping[str, NumericalFlux] = {
    flux.name: flux
    for flux in (
        NumericalFlux("upwind", "upwind flux", _upwind, 1, True, _refuse_nonlinear),
        NumericalFlux("central", "mean of the fluxes of both cells", _central, 2, False, refuse_without_transport),
        NumericalFlux(
            "scharfetter-gummel",
            "flux of Scharfetter and Gummel, exact for steady advection and diffusion between two cells",
            _scharfetter_gummel,
            2,
            True,
            _refuse_not_both,
            diffuses=True,
        ),
        NumericalFlux(
            "lax-wendroff",
            "flux of Lax and Wendroff, for velocities along rows of cells",
            _lax_wendroff,
            2,
            False,
            refuse_without_transport,
            one_step=True,
        ),
        NumericalFlux("godunov", "Godunov's flux, of the exact Riemann problem", _godunov, 1, True, _refuse_unsolved),
        NumericalFlux("rusanov", "Rusanov's flux (local Lax-Friedrichs)", _rusanov, 1, True, refuse_without_transport),
        NumericalFlux("engquist-osher", "flux of Engquist and Osher", _engquist_osher, 1, True, _refuse_unordered),
    )
}
"""The two-point fluxes of transport, by name."""


def exact_flux(equation: Equation) -> NumericalFlux:
    """Godunov's flux where the points with f′ = 0 are known, Rusanov's otherwise."""
    return FLUXES["godunov"] if FLUXES["godunov"].refuse(equation) is None else FLUXES["rusanov"]
