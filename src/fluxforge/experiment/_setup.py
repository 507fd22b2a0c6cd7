"""The records of a discovery by experiments: two cells, their measured fluxes, and the form of a flux."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge.errors import ExpressionError, SchemeError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation
from fluxforge.pde._parameter import Unit, multiply_units, unit
from fluxforge.scheme.fluxes import FLUXES

Samples: TypeAlias = Mapping[str, Float[np.ndarray, " samples"]]
"""The value of each variable, by name."""

LENGTH = unit(length=1)
# The only flux that `textbook` may give by name, since its formula is different for every f.
GODUNOV = "godunov"
# One sample in five is held out of training and of fits.
HELD_OUT_STRIDE = 5


@dataclass(frozen=True)
class Variable:
    """A quantity of the two cells or the face between them.

    `partner` is the variable that it becomes when the cells are exchanged, and `turns` says that its sign changes then;
    `positive` ones are drawn log-uniformly from [low, high], others uniformly.
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
    meet at the face, and the flux is averaged over a time in which no wave comes back. Reactions are left out, since
    they are not part of a flux. `peclet` is the largest |a·n| δ/K, if velocities are drawn by that number.
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
        """The values of all variables in `count` random experiments, by name."""
        samples = {}
        for each in self.variables:
            if each.positive:
                samples[each.name] = np.exp(rng.uniform(np.log(each.low), np.log(each.high), count))
            else:
                samples[each.name] = rng.uniform(each.low, each.high, count)
        if self.peclet is not None and self.velocity is not None:
            # Drawn as a Péclet number, so that strong transport is as frequent as weak.
            a, others = self.velocity.name, [each for each in self.variables if each.positive]
            lengths = [samples[each.name] for each in others if each.unit == LENGTH]
            K = np.mean([samples[each.name] for each in others if each.unit != LENGTH], axis=0)
            samples[a] = samples[a] * self.peclet / self.velocity.high * K / np.sum(lengths, axis=0)
        return samples


class Measured(NamedTuple):
    """The flux of every sample and an estimate of its error."""

    flux: np.ndarray
    error: np.ndarray


@dataclass(frozen=True, eq=False)
class Dataset:
    """Random experiments with their fluxes and the estimated error of each; the last fifth is held out."""

    experiment: Experiment
    samples: Samples
    flux: Float[np.ndarray, " samples"]
    error: Float[np.ndarray, " samples"]

    def __len__(self) -> int:
        return len(self.flux)

    @property
    def size(self) -> float:
        """The root mean square of the fluxes."""
        return float(np.sqrt(np.mean(self.flux**2)))

    @property
    def relative_error(self) -> float:
        """The root mean square of the errors over that of the fluxes."""
        return float(np.sqrt(np.mean(self.error**2))) / self.size

    def part(self, rows: slice) -> "Dataset":
        """The data set with these rows only."""
        samples = {name: values[rows] for name, values in self.samples.items()}
        return Dataset(self.experiment, samples, self.flux[rows], self.error[rows])

    @property
    def fitted(self) -> "Dataset":
        """The experiments that networks and constants are fitted to."""
        return self.part(slice(0, len(self) - len(self) // HELD_OUT_STRIDE))

    @property
    def held_out(self) -> "Dataset":
        """The experiments that networks and formulas are judged by."""
        return self.part(slice(len(self) - len(self) // HELD_OUT_STRIDE, len(self)))

    def distance(self, flux: Float[np.ndarray, " samples"]) -> float:
        """The relative distance rms(flux − measured)/rms(measured)."""
        return float(np.sqrt(np.mean((flux - self.flux) ** 2))) / self.size


@dataclass(frozen=True)
class Term:
    """weight · g(columns): formulas of the experiment's variables."""

    weight: sp.Expr
    columns: tuple[sp.Expr, ...]


@dataclass(frozen=True)
class Form:
    """F = offset + Σ weight · g(columns).

    `names` are the arguments of g, one per column; `positive` ones span decades, so that a network is given their
    logarithm.
    """

    names: tuple[str, ...]
    terms: tuple[Term, ...]
    positive: tuple[bool, ...]
    offset: sp.Expr = sp.S.Zero

    def compose(self, g: sp.Expr) -> sp.Expr:
        """The formula of the flux for a formula g of `names`."""
        names = [symbol(name) for name in self.names]
        return self.offset + sp.Add(
            *(
                term.weight * g.subs(dict(zip(names, term.columns, strict=True)), simultaneous=True)
                for term in self.terms
            )
        )

    def arrays(self, samples: Samples) -> "FormArrays":
        """Offset, weights and columns in the given experiments."""
        return FormArrays(
            offset=evaluate_on(samples, self.offset),
            weights=np.stack([evaluate_on(samples, term.weight) for term in self.terms], axis=1),
            columns=np.stack([_columns(samples, term) for term in self.terms], axis=1),
        )


@dataclass(frozen=True, eq=False)
class FormArrays:
    """Offset, weights and columns of a form, by experiment, term and column."""

    offset: Float[np.ndarray, " samples"]
    weights: Float[np.ndarray, "samples terms"]
    columns: Float[np.ndarray, "samples terms columns"]


def _columns(samples: Samples, term: Term) -> Float[np.ndarray, "samples columns"]:
    return np.stack([evaluate_on(samples, each) for each in term.columns], axis=1)


def whole_form(experiment: Experiment) -> Form:
    """The form without any reduction: F = g of all variables."""
    columns = tuple(each.symbol for each in experiment.variables)
    positive = tuple(each.positive for each in experiment.variables)
    return Form(experiment.names, (Term(sp.S.One, columns),), positive)


def evaluate_on(samples: Samples, formula: sp.Expr) -> Float[np.ndarray, " samples"]:
    """A formula of the variables in each of the experiments; it may be infinite or NaN."""
    values = {symbol(name): each for name, each in samples.items()}
    with np.errstate(all="ignore"):
        numbers = np.asarray(evaluate(formula, values, np), float)
    return np.broadcast_to(numbers, len(next(iter(samples.values()))))


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
        # `doit` evaluates its minima and maxima, which comparisons need.
        return flux.of(equation, *(each.symbol for each in experiment.states)).doit()
    except SchemeError as error:
        raise ExpressionError(str(error)) from error
