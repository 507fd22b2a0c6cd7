"""An experiment on two cells: what is drawn at random, in which ranges and units, and what the flux depends on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge import recipe
from fluxforge.errors import EquationError, ExpressionError, InputError, SchemeError
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation, differentiate
from fluxforge.pde._parameter import Parameter, Rank, Unit, Where, multiply_units, unit
from fluxforge.scheme.fluxes import FLUXES

Samples: TypeAlias = Mapping[str, Float[np.ndarray, " samples"]]
"""The value of each variable, by name."""

_LENGTH = unit(length=1)
# The one flux that `textbook` may give by name, since its formula is another for every f.
GODUNOV = "godunov"
# Half the width of the range of states around the points where f′ = 0.
_AROUND = 0.5


@dataclass(frozen=True)
class Variable:
    """Something that the two cells and their face have.

    `partner` is what it becomes when the cells change places, and `turns` says that its sign changes then; `positive`
    ones are drawn log-uniformly from [low, high], others uniformly.
    """

    name: str
    unit: Unit
    low: float
    high: float
    partner: str
    positive: bool = False
    turns: bool = False

    @property
    def symbol(self) -> sp.Symbol:
        """Its symbol in formulas."""
        return symbol(self.name)


@dataclass(frozen=True)
class Experiment:
    """Two cells of an equation, whose centres are at distances from the face between them.

    With diffusion the experiment is the steady state between two fixed values; without it, two constant states that
    meet at the face, and the flux is averaged over a time in which no wave comes back. Reactions are left out: they are
    no part of a flux.
    """

    equation: Equation
    variables: tuple[Variable, ...]
    peclet: float | None

    @property
    def steady(self) -> bool:
        """Whether the equation diffuses, so that there is a steady state."""
        return bool(self.equation.diffusion != 0)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return tuple(each.name for each in self.variables)

    @property
    def states(self) -> tuple[Variable, Variable]:
        """The unknown in the two cells."""
        return self.variables[0], self.variables[1]

    @property
    def velocity(self) -> Variable | None:
        """a·n, if the equation transports."""
        return next((each for each in self.variables if each.turns), None)

    @property
    def unit(self) -> Unit:
        """The unit of the flux: that of a f(u), or of K u over a length."""
        return multiply_units(unit(length=1, time=-1), self.equation.unknown_unit)

    def exchange(self, samples: Samples) -> dict[str, np.ndarray]:
        """The same experiments seen from the other cell: P and N change places, and the normal turns."""
        return {each.name: (-1 if each.turns else 1) * samples[each.partner] for each in self.variables}

    def exchange_formula(self, formula: sp.Expr) -> sp.Expr:
        """A formula with P and N exchanged and the normal turned."""
        swapped = {each.symbol: (-1 if each.turns else 1) * symbol(each.partner) for each in self.variables}
        return formula.subs(swapped, simultaneous=True)

    def draw(self, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Random experiments."""
        found = {}
        for each in self.variables:
            if each.positive:
                found[each.name] = np.exp(rng.uniform(np.log(each.low), np.log(each.high), count))
            else:
                found[each.name] = rng.uniform(each.low, each.high, count)
        if self.peclet is not None and self.velocity is not None:
            # Drawn as a Péclet number, so that strong transport is as frequent as weak.
            a, others = self.velocity.name, [each for each in self.variables if each.positive]
            lengths = [found[each.name] for each in others if each.unit == _LENGTH]
            K = np.mean([found[each.name] for each in others if each.unit != _LENGTH], axis=0)
            found[a] = found[a] * self.peclet / self.velocity.high * K / np.sum(lengths, axis=0)
        return found


def design_experiment(spec: recipe.Recipe) -> Experiment:
    """The experiment that a recipe asks for; raises InputError, naming the field, for what cannot be measured."""
    data = spec.data
    assert isinstance(data, recipe.Experiment)
    where = f"recipe {spec.name!r}"
    try:
        equation = recipe.equation_of(spec)
    except EquationError as error:
        raise InputError(f"{where}: field 'equation': {error}") from error
    if data.peclet is not None and (equation.velocity is None or equation.diffusion == 0):
        raise InputError(f"{where}: field 'data.peclet': equation {equation.name!r} does not transport and diffuse")
    if spec.parameters or spec.diffusivity is not None:
        raise InputError(f"{where}: field 'parameters': those of an experiment are drawn; give 'data.values'")
    experiment = Experiment(equation, _variables(data, equation), data.peclet)
    for field, text in (("data.law", data.law), ("textbook", spec.textbook)):
        if text is not None:
            _check_formula(text, experiment, f"{where}: field {field!r}")
    return experiment


def parse_flux(text: str, experiment: Experiment) -> sp.Expr:
    """A flux written as a formula of the experiment's variables, or `godunov`; raises ExpressionError."""
    if text == GODUNOV:
        return _godunov(experiment)
    return parse(text, {name: symbol(name) for name in experiment.names})


def _godunov(experiment: Experiment) -> sp.Expr:
    """Godunov's flux of transport without diffusion, for comparisons and decoys only."""
    equation, flux = experiment.equation, FLUXES[GODUNOV]
    if equation.diffusion != 0:
        raise ExpressionError(f"Godunov's flux is that of transport, and the equation {equation.name!r} diffuses")
    try:
        # Its extremes are unevaluated, and comparisons need them decided.
        return flux.of(equation, *(each.symbol for each in experiment.states)).doit()
    except SchemeError as error:
        raise ExpressionError(str(error)) from error


def _check_formula(text: str, experiment: Experiment, where: str) -> None:
    try:
        parse_flux(text, experiment)
    except ExpressionError as error:
        raise InputError(f"{where}: {error}") from error


def _variables(data: recipe.Experiment, equation: Equation) -> tuple[Variable, ...]:
    name, unknown = equation.unknown, equation.unknown_unit
    low, high = data.states or _usual_states(equation)
    found = [Variable(f"{name}_{end}", unknown, low, high, f"{name}_{other}") for end, other in ("PN", "NP")]
    if equation.velocity is not None:
        p = equation.parameter(equation.velocity)
        along = p.normal_name
        found.append(Variable(along, p.unit or unit(), -data.velocity, data.velocity, along, turns=True))
    if equation.diffusion != 0:
        for p in equation.parameters:
            if symbol(p.name) in equation.diffusion.free_symbols:
                found += _parameter(p, data)
        found += _pair("d", _LENGTH, data.distances) if data.jump else [_shared("delta", _LENGTH, data.distances)]
    return tuple(found)


def _parameter(p: Parameter, data: recipe.Experiment) -> list[Variable]:
    if p.unit is None:
        raise InputError(f"parameter {p.name!r} of the equation has no unit, which an experiment needs")
    # A face carries one n·K n of a tensor, so that a flux of two would be no scheme.
    if p.rank is Rank.TENSOR:
        return [_shared(p.normal_name, p.unit, data.values)]
    if p.where is Where.CELL and data.jump:
        return _pair(p.name, p.unit, data.values)
    return [_shared(p.name, p.unit, data.values)]


def _pair(name: str, own: Unit, reach: tuple[float, float]) -> list[Variable]:
    return [Variable(f"{name}_{end}", own, *reach, f"{name}_{other}", positive=True) for end, other in ("PN", "NP")]


def _shared(name: str, own: Unit, reach: tuple[float, float]) -> Variable:
    return Variable(name, own, *reach, name, positive=True)


def _usual_states(equation: Equation) -> tuple[float, float]:
    """Half a unit around the points where f′ = 0; [−1, 1] where there are none."""
    slope = differentiate(equation.transported, equation.u)
    if not slope.has(equation.u):
        return -1.0, 1.0
    points = [float(each) for each in sp.solve(slope, equation.u) if each.is_real]
    return (min(points) - _AROUND, max(points) + _AROUND) if points else (-1.0, 1.0)
