"""A time integrator applied to an equation: the stages of a scheme. `_tableau` defines D_i and k_j."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import sympy as sp

from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.scheme._scheme import NEXT, STEP, Claims, Ghost, Message, Output, Scheme, Stage
from fluxforge.scheme._tableau import EULER, Row, Tableau

_MIDDLE = sp.Rational(1, 2)


@dataclass(frozen=True)
class State:
    """A state as a sum Σ weight · field of T and earlier outputs, so that its jump can be written term by term."""

    terms: tuple[tuple[sp.Expr, str], ...] = ((sp.S.One, "T"),)

    def at(self, end: str = "") -> sp.Expr:
        """The state in a cell, or at one end of an edge."""
        return sp.Add(*(weight * symbol(f"{name}{end}") for weight, name in self.terms))

    @property
    def jump(self) -> sp.Expr:
        """The state at N less that at P, term by term, so that equal values cancel before they are weighted."""
        return sp.Add(*(weight * (symbol(f"{name}_N") - symbol(f"{name}_P")) for weight, name in self.terms))


class Prepared(NamedTuple):
    """The discretisation of one state in space: rounds before the flux, and the message −A F."""

    rounds: tuple[Stage, ...]
    message: Message


def _serves_all(equation: Equation) -> str | None:
    return None


Axes = tuple[str, ...]

PLANE: Axes = COORDINATES[:2]


@dataclass(frozen=True)
class Space:
    """A discretisation in space.

    - `prepare(equation, state, tag, axes)` gives the rounds (gradients, slopes, limiters) that the flux of a state
      needs, and the message −A F. `tag` ends the names of what these rounds compute, since a method of several stages
      repeats them.
    - `axes` are the coordinates whose components the formulas contain, empty where they contain none.
    - `orders` claims an order per family of meshes for the equation, and is empty without claims; `linear_exact` claims
      that linear fields are steady where the coefficients are constant.
    - `refuse(equation)` is None for an equation that the space serves, and otherwise the reason why it does not, which
      ends the sentence "scheme 'NAME' cannot be used with the equation 'EQUATION': ".
    - `default` is the equation of a scheme whose equation is not given.
    - `linear` is false where the flux of a linear equation is not linear in the unknown, as with limited slopes.
    - `centred`: with forward Euler the flux contains Δt and is second order in time, so that sources, walls and
      velocities that change in time are taken at the middle of the step.
    """

    name: str
    summary: str
    prepare: Callable[[Equation, State, str, Axes], Prepared]
    axes: Axes = ()
    orders: Mapping[str, float] = field(default_factory=dict)
    linear_exact: bool | None = None
    refuse: Callable[[Equation], str | None] = _serves_all
    default: Equation = HEAT
    linear: bool = True
    centred: bool = False

    def at(self, dimension: int) -> "Space":
        """The space for meshes of `dimension` dimensions; orders are claimed for families in the plane only."""
        if len(self.axes) in (0, dimension):
            return self
        return replace(self, axes=COORDINATES[:dimension], orders={})


def _two_point(equation: Equation, state: State, tag: str, axes: Axes) -> Prepared:
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
        {"z": _two_point(equation, state, "", ()).message}, {"rate": Output(rate(equation, "z", state), Ghost.ZERO)}
    )


def integrate(tableau: Tableau, equation: Equation, space: Space = TWO_POINT, *, name: str | None = None) -> Scheme:
    """The scheme of a tableau and a discretisation in space, the two-point flux unless given, for an equation.

    A stage stores only what later stages need: a rate that is used again, an increment D_i that is added later, and
    otherwise the state u + D_i itself, unless the message can be written with rates that are stored anyway.
    """
    linear = equation.linear and space.linear
    stages = integrate_stages(tableau, equation, space)
    # A flux that contains Δt, such as that of Lax and Wendroff, changes R(z) of the tableau.
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


def integrate_stages(tableau: Tableau, equation: Equation, space: Space) -> tuple[Stage, ...]:
    """The stages that `integrate` makes; their messages may contain further symbols, which the caller evaluates."""
    integration, times = _Integration(tableau, equation, space), stage_times(tableau)
    if space.centred and tableau.name == EULER.name:
        times = (_MIDDLE,)
    return tuple(
        replace(stage, time=times[i]) for i in range(len(tableau.rows)) for stage in integration.make_stages(i)
    )


def stage_times(tableau: Tableau) -> tuple[sp.Rational, ...]:
    """The c_i with k_i = f(u + D_i, t + c_i Δt): D_i of the equation u' = 1 over Δt."""
    times = [sp.Rational(0)]
    for row in tableau.rows:
        times.append(sp.Add(*row.rates.values(), *(weight * times[j] for j, weight in row.states.items())))
    return tuple(times[:-1])


class _Integration:
    """The rates and increments that stages store, their names, and the state at the start of each stage."""

    def __init__(self, tableau: Tableau, equation: Equation, space: Space) -> None:
        self.rows, self.equation, self.labels, self.space = tableau.rows, equation, tableau.labels, space
        self.taken = frozenset(p.name for p in equation.parameters)
        last = len(self.rows)
        kept = [j for j in range(last) if any(j in row.rates for row in self.rows[j + 1 :])]
        self.rates = {j: self._unused_name("rate" if len(kept) == 1 else f"k{j + 1}") for j in kept}
        added = (i for i in range(1, last) if any(i in row.states for row in self.rows[i:]))
        self.increments = {i: self._unused_name(f"D{i}") for i in added}
        self.start = State()

    def make_stages(self, i: int) -> tuple[Stage, ...]:
        """The stages that evaluate the rate k_i and the increment D_{i+1}."""
        total = self._total(i)
        tag = "" if len(self.rows) == 1 else str(i + 1)
        rounds, message = self.space.prepare(self.equation, self.start, tag, self.space.axes)
        now = rate(self.equation, total, self.start)
        row, following = self.rows[i], i + 1
        outputs = {self.rates[i]: Output(now, Ghost.ZERO)} if i in self.rates else {}
        if following == len(self.rows):
            outputs[NEXT] = Output(self._add_change(row, {i: now}))
        elif following in self.increments:
            name = self.increments[following]
            outputs[name] = Output(self._change(row, {i: now}), Ghost.ZERO)
            self.start = State(((sp.S.One, "T"), (sp.S.One, name)))
        elif all(j in self.rates for j in row.rates) and not row.states:
            rates = ((weight * symbol(STEP), self.rates[j]) for j, weight in row.rates.items())
            self.start = State(((sp.S.One, "T"), *rates))
        else:
            name = self._unused_name(self.labels.get(following, f"Y{following}"))
            outputs[name] = Output(self._add_change(row, {i: now}))
            self.start = State(((sp.S.One, name),))
        return (*rounds, Stage({total: message}, outputs))

    def _total(self, i: int) -> str:
        if len(self.rows) == 1 or self.labels:
            return f"z_{self.labels[i]}" if i in self.labels else "z"
        return self._unused_name(f"z{i + 1}")

    def _unused_name(self, name: str) -> str:
        """The name, with the prefix `stage_` if a parameter has that name; parameters' names have no underscore."""
        return f"stage_{name}" if name in self.taken else name

    def _change(self, row: Row, now: Mapping[int, sp.Expr]) -> sp.Expr:
        """D_i, with the rates in `now` written out and all others by the names under which they are stored."""
        rates = {j: now[j] if j in now else symbol(self.rates[j]) for j in row.rates}
        if row.states:
            states = (weight * symbol(self.increments[j]) for j, weight in row.states.items())
            return sp.Add(*states, *(row.rates[j] * symbol(STEP) * rates[j] for j in rates))
        common = sp.gcd_list(list(row.rates.values()))
        return common * symbol(STEP) * sp.Add(*(row.rates[j] / common * rates[j] for j in rates))

    def _add_change(self, row: Row, now: Mapping[int, sp.Expr]) -> sp.Expr:
        """T + D_i; a single rate is multiplied out, T + Δt/V z + Δt S."""
        if row.states or list(row.rates) != list(now):
            return symbol("T") + self._change(row, now)
        ((i, weight),) = row.rates.items()
        return symbol("T") + sp.Add(*(weight * symbol(STEP) * term for term in sp.Add.make_args(now[i])))
