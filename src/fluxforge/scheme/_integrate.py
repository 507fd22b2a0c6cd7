"""Time integrators as data, and an integrator applied to an equation: the stages of a scheme.

D_i = Σ_j states[i][j] D_j + Δt Σ_j rates[i][j] k_j,  k_j = f(u + D_j),  D_0 = 0,  u' = u + D_s,

f being the right-hand side of c ∂u/∂t = …, divided by c. A Runge–Kutta method has no `states`; methods of recurrences
(Runge–Kutta–Legendre, the strong-stability-preserving ones in Shu's and Osher's form) have.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

import sympy as sp

from fluxforge.errors import InputError
from fluxforge.expression import symbol
from fluxforge.pde import HEAT, Equation
from fluxforge.scheme._scheme import Claims, Message, Output, Scheme, Stage
from fluxforge.scheme._symbols import NEXT, STEP, Ghost

Weights = Mapping[int, sp.Rational]


@dataclass(frozen=True)
class Row:
    """D_i of one stage: weights of earlier D_j (j ≥ 1) and of the rates k_j (j < i)."""

    rates: Weights
    states: Weights = field(default_factory=dict)


@dataclass(frozen=True)
class Tableau:
    """An explicit integrator, or with θ > 0 the implicit one u' − u = (1 − θ)(F(u) − u) + θ(F(u') − u').

    - `order` in time, and `stable_to`: |R(z)| ≤ 1 on [−stable_to, 0] of the real axis;
    - `labels` names intermediate states, where they have a name of their own.
    """

    name: str
    summary: str
    rows: tuple[Row, ...]
    order: int
    stable_to: float
    theta: sp.Expr = sp.S.Zero
    labels: Mapping[int, str] = field(default_factory=dict)


def runge_kutta(rows: tuple[tuple[sp.Rational | int, ...], ...]) -> tuple[Row, ...]:
    """The rows of a Butcher tableau below its first, the weights b as the last."""
    return tuple(Row({j: sp.Rational(weight) for j, weight in enumerate(row) if weight}) for row in rows)


_HALF = sp.Rational(1, 2)
_RKL2 = re.compile(r"rkl2-([1-9][0-9]?)")
_MOST_RKL2 = 60

EULER = Tableau("euler", "forward Euler", runge_kutta(((1,),)), order=1, stable_to=2.0)
MIDPOINT = Tableau(
    "midpoint",
    "explicit midpoint rule (second-order Runge-Kutta)",
    runge_kutta(((_HALF,), (0, 1))),
    order=2,
    stable_to=2.0,
    labels={1: "half"},
)
RK4 = Tableau(
    "rk4",
    "the classical fourth-order Runge-Kutta method",
    runge_kutta(((_HALF,), (0, _HALF), (0, 0, 1), tuple(sp.Rational(b, 6) for b in (1, 2, 2, 1)))),
    order=4,
    stable_to=2.785293563405282,
)
SSP2 = Tableau(
    "ssp2",
    "strong-stability-preserving Runge-Kutta method of order 2 (Shu and Osher)",
    (Row({0: sp.S.One}), Row({1: _HALF}, {1: _HALF})),
    order=2,
    stable_to=2.0,
)
SSP3 = Tableau(
    "ssp3",
    "strong-stability-preserving Runge-Kutta method of order 3 (Shu and Osher)",
    (
        Row({0: sp.S.One}),
        Row({1: sp.Rational(1, 4)}, {1: sp.Rational(1, 4)}),
        Row({2: sp.Rational(2, 3)}, {2: sp.Rational(2, 3)}),
    ),
    order=3,
    stable_to=2.5127453266183255,
)
CRANK_NICOLSON = Tableau(
    "crank-nicolson",
    "trapezoidal rule: implicit, second order",
    EULER.rows,
    order=2,
    stable_to=float("inf"),
    theta=_HALF,
)


IMPLICIT = Tableau(
    "implicit",
    "backward Euler: implicit, first order",
    EULER.rows,
    order=1,
    stable_to=float("inf"),
    theta=sp.S.One,
)


def rkl2(s: int) -> Tableau:
    """Runge–Kutta–Legendre of order two with s ≥ 2 stages, in exact rationals: stable on [−(s² + s − 2)/2, 0].

    Meyer, Balsara & Aslam, J. Comput. Phys. 257 (2014) 594–626, eqs. 16–17, written for the increments D_j = Y_j − u:
    their weights 1 − μ − ν on u would not add up to one after rounding, and the total would drift.
    """
    if not 2 <= s <= _MOST_RKL2:
        raise InputError(f"rkl2 has 2 to {_MOST_RKL2} stages, got {s}")
    w = sp.Rational(4, s * s + s - 2)
    rows = [Row({0: _b(1) * w})]
    for j in range(2, s + 1):
        mu = sp.Rational(2 * j - 1, j) * _b(j) / _b(j - 1)
        nu = -sp.Rational(j - 1, j) * _b(j) / _b(j - 2)
        states = {j - 1: mu, j - 2: nu} if j > 2 else {1: mu}
        rows.append(Row({j - 1: mu * w, 0: -(1 - _b(j - 1)) * mu * w}, states))
    summary = f"Runge-Kutta-Legendre of order 2 with {s} stages: a stabilised baseline"
    return Tableau(f"rkl2-{s}", summary, tuple(rows), order=2, stable_to=(s * s + s - 2) / 2)


@cache
def _b(j: int) -> sp.Rational:
    return sp.Rational(1, 3) if j < 2 else sp.Rational(j * j + j - 2, 2 * j * (j + 1))


TABLEAUX: Mapping[str, Tableau] = {
    tableau.name: tableau for tableau in (EULER, MIDPOINT, RK4, rkl2(8), SSP2, SSP3, CRANK_NICOLSON, IMPLICIT)
}
"""The methods that serve every equation, by name; `rkl2-N` has any number of stages from 2 to 60."""


def find_tableau(name: str) -> Tableau | None:
    """The time integrator of that name, `rkl2-N` for any N among them; None where there is none."""
    if (stages := _RKL2.fullmatch(name)) is not None and 2 <= int(stages[1]) <= _MOST_RKL2:
        return rkl2(int(stages[1]))
    return TABLEAUX.get(name)


@dataclass(frozen=True)
class State:
    """A state as a sum Σ weight · field of what cells hold, T and earlier outputs: the flux needs its jump."""

    terms: tuple[tuple[sp.Expr, str], ...] = ((sp.S.One, "T"),)

    def at(self, end: str = "") -> sp.Expr:
        """The state in a cell, or at one end of an edge."""
        return sp.Add(*(weight * symbol(f"{name}{end}") for weight, name in self.terms))

    @property
    def jump(self) -> sp.Expr:
        """The state at N less that at P, term by term, so that equal values cancel before they are weighted."""
        return sp.Add(*(weight * (symbol(f"{name}_N") - symbol(f"{name}_P")) for weight, name in self.terms))


class Prepared(NamedTuple):
    """What a discretisation in space makes of one state: rounds before the flux, and what P receives, −A F."""

    rounds: tuple[Stage, ...]
    message: Message


def _serves_all(equation: Equation) -> str | None:
    return None


@dataclass(frozen=True)
class Space:
    """A discretisation in space.

    - `prepare(equation, state, tag)` gives the rounds (gradients, slopes, limiters) that the flux of a state needs, and
      the message −A F. `tag` ends the names of what these rounds compute, since a method of several stages repeats
      them.
    - `orders` claims an order per family of meshes for the equation, empty where nothing is claimed; `linear_exact`
      that linear fields are steady where the coefficients are constant.
    - `refuse(equation)` is None for an equation that the space serves, and otherwise the reason why it does not, which
      ends the sentence "scheme 'NAME' does not serve the equation 'EQUATION': ".
    - `default` is the equation of a scheme whose equation is not given.
    - `linear` is false where the flux of a linear equation is not linear in the unknown, as with limited slopes.
    - `in_dimension(n)` is the same space for meshes of n dimensions, where the formulas contain components of vectors;
      None where they do not. `prepare` itself is then for the plane.
    """

    name: str
    summary: str
    prepare: Callable[[Equation, State, str], Prepared]
    orders: Mapping[str, float] = field(default_factory=dict)
    linear_exact: bool | None = None
    refuse: Callable[[Equation], str | None] = _serves_all
    default: Equation = HEAT
    linear: bool = True
    in_dimension: "Callable[[int], Space] | None" = None

    def at(self, dimension: int) -> "Space":
        """The space for meshes of that many dimensions."""
        return self if self.in_dimension is None else self.in_dimension(dimension)


def _two_point(equation: Equation, state: State, tag: str) -> Prepared:
    flux = equation.flux(state.at("_P"), state.at("_N"), state.jump)
    return Prepared((), Message(-symbol("A") * flux))


TWO_POINT = Space("two-point", "two-point flux", _two_point)
"""The equation's own flux between two cells."""


def rate(equation: Equation, total: str, state: State) -> sp.Expr:
    """du/dt of a cell, (z/V + S + r(u))/c with z the sum named `total` of what it receives."""
    reaction = equation.at_cell(equation.reaction, state.at())
    return (symbol(total) / symbol("V") + symbol("S") + reaction) / equation.at_cell(equation.capacity, state.at())


def semi_discrete(equation: Equation) -> Stage:
    """∂u/∂t of every cell as a stage with the one output `rate`: the equation's two-point flux and its reaction."""
    state = State()
    return Stage(
        {"z": _two_point(equation, state, "").message}, {"rate": Output(rate(equation, "z", state), Ghost.ZERO)}
    )


def integrate(tableau: Tableau, equation: Equation, space: Space = TWO_POINT, *, name: str | None = None) -> Scheme:
    """The scheme of a tableau and a discretisation in space, the two-point flux unless given, for an equation.

    A stage keeps what later stages need and nothing else: a rate that is used again, an increment D_i that is added up
    later, and otherwise the state u + D_i itself, unless the message can be written with rates that are kept anyway.
    """
    linear = equation.linear and space.linear
    stages = integrate_stages(tableau, equation, space)
    # A flux that contains Δt, as Lax's and Wendroff's, has another R(z) than the tableau.
    in_flux = len(tableau.rows) == 1 and any(
        symbol(STEP) in message.expression.free_symbols for stage in stages for message in stage.messages.values()
    )
    claims = Claims(
        conservative=True,
        linear_exact=space.linear_exact,
        time_order=tableau.order if linear else None,
        generator=True,
        space=space.orders,
        stable_to=tableau.stable_to if linear and not in_flux else None,
    )
    summary = f"{space.summary}, {tableau.summary}"
    return Scheme(name or tableau.name, stages, tableau.theta, summary, claims, equation)


def integrate_stages(tableau: Tableau, equation: Equation, space: Space = TWO_POINT) -> tuple[Stage, ...]:
    """The stages alone, whose messages may contain symbols that the caller gives a value."""
    work, times = _Integration(tableau, equation, space), stage_times(tableau)
    return tuple(replace(stage, time=times[i]) for i in range(len(tableau.rows)) for stage in work.stages(i))


def stage_times(tableau: Tableau) -> tuple[sp.Rational, ...]:
    """The c_i with k_i = f(u + D_i, t + c_i Δt): D_i of the equation u' = 1 over Δt."""
    times = [sp.Rational(0)]
    for row in tableau.rows:
        times.append(sp.Add(*row.rates.values(), *(weight * times[j] for j, weight in row.states.items())))
    return tuple(times[:-1])


class _Integration:
    """Which rates and increments are kept, under which names, and the state that each stage starts from."""

    def __init__(self, tableau: Tableau, equation: Equation, space: Space) -> None:
        self.rows, self.equation, self.labels, self.space = tableau.rows, equation, tableau.labels, space
        self.taken = frozenset(p.name for p in equation.parameters)
        last = len(self.rows)
        kept = [j for j in range(last) if any(j in row.rates for row in self.rows[j + 1 :])]
        self.rates = {j: self._free("rate" if len(kept) == 1 else f"k{j + 1}") for j in kept}
        added = (i for i in range(1, last) if any(i in row.states for row in self.rows[i:]))
        self.increments = {i: self._free(f"D{i}") for i in added}
        self.start = State()

    def stages(self, i: int) -> tuple[Stage, ...]:
        """The rounds that evaluate k_i and with it D_{i+1}."""
        total = self._total(i)
        rounds, message = self.space.prepare(self.equation, self.start, "" if len(self.rows) == 1 else str(i + 1))
        now = rate(self.equation, total, self.start)
        row, following = self.rows[i], i + 1
        outputs = {self.rates[i]: Output(now, Ghost.ZERO)} if i in self.rates else {}
        if following == len(self.rows):
            outputs[NEXT] = Output(self._moved(row, {i: now}))
        elif following in self.increments:
            name = self.increments[following]
            outputs[name] = Output(self._change(row, {i: now}), Ghost.ZERO)
            self.start = State(((sp.S.One, "T"), (sp.S.One, name)))
        elif all(j in self.rates for j in row.rates) and not row.states:
            rates = ((weight * symbol(STEP), self.rates[j]) for j, weight in row.rates.items())
            self.start = State(((sp.S.One, "T"), *rates))
        else:
            name = self._free(self.labels.get(following, f"Y{following}"))
            outputs[name] = Output(self._moved(row, {i: now}))
            self.start = State(((sp.S.One, name),))
        return (*rounds, Stage({total: message}, outputs))

    def _total(self, i: int) -> str:
        if len(self.rows) == 1 or self.labels:
            return f"z_{self.labels[i]}" if i in self.labels else "z"
        return self._free(f"z{i + 1}")

    def _free(self, name: str) -> str:
        """The name, or `stage_` and the name where a parameter has it; names of parameters have no underscore."""
        return f"stage_{name}" if name in self.taken else name

    def _change(self, row: Row, now: Mapping[int, sp.Expr]) -> sp.Expr:
        """D_i, the rate of this stage written out, the others as they are kept."""
        rates = {j: now[j] if j in now else symbol(self.rates[j]) for j in row.rates}
        if row.states:
            states = (weight * symbol(self.increments[j]) for j, weight in row.states.items())
            return sp.Add(*states, *(row.rates[j] * symbol(STEP) * rates[j] for j in rates))
        common = sp.gcd_list(list(row.rates.values()))
        return common * symbol(STEP) * sp.Add(*(row.rates[j] / common * rates[j] for j in rates))

    def _moved(self, row: Row, now: Mapping[int, sp.Expr]) -> sp.Expr:
        """T + D_i; a single rate is multiplied out, T + Δt/V z + Δt S."""
        if row.states or list(row.rates) != list(now):
            return symbol("T") + self._change(row, now)
        ((i, weight),) = row.rates.items()
        return symbol("T") + sp.Add(*(weight * symbol(STEP) * term for term in sp.Add.make_args(now[i])))
