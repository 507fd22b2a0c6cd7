"""Properties of a network's flux, each tested at random points: symmetries, limits, units, separability."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol, runtime_checkable

import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge.distil._table import Table
from fluxforge.experiment._setup import Experiment, Samples, Variable
from fluxforge.expression._evaluate import evaluate

POINTS = 2_000
# A property holds if it is violated by no more than this multiple of the network's own error.
VIOLATION_RATIO = 3.0
# Factors by which lengths and times are multiplied lie between 1/REACH and REACH.
REACH = 1.7
# Number of values of either group that represent its whole range.
ANCHORS = 64
# Separation is tested for at most this many columns: there are 31 ways to divide six.
MOST_COLUMNS = 6


@dataclass(frozen=True)
class Check:
    """A tested property of a flux.

    `defect` is the root mean square by which the network violates it, relative to the fluxes, `limit` the largest
    defect that counts as none; `used` says that the reduced form relies on the property.
    """

    name: str
    statement: str
    defect: float
    limit: float
    used: bool = False

    @property
    def holds(self) -> bool:
        """Whether the violation is within the network's own error."""
        return self.defect <= self.limit


@runtime_checkable
class FluxFunction(Protocol):
    """A flux as a function of samples, and its relative error, such as a trained network."""

    @property
    def error(self) -> float:
        """Root mean square of its error over that of the fluxes."""

    def __call__(self, samples: Samples) -> Float[np.ndarray, " samples"]:
        """The flux in the given experiments."""


@dataclass(frozen=True, eq=False)
class Probe:
    """A network of the whole flux, and random points to test it at."""

    experiment: Experiment
    network: FluxFunction
    size: float
    rng: np.random.Generator

    @property
    def limit(self) -> float:
        """The largest violation that counts as none."""
        return VIOLATION_RATIO * self.network.error

    def draw(self) -> dict[str, np.ndarray]:
        """The variables of POINTS random experiments."""
        return self.experiment.draw(POINTS, self.rng)

    def check(self, name: str, statement: str, off: Float[np.ndarray, " points"]) -> Check:
        """The check of a property from the values `off` of an expression that should be zero."""
        return Check(name, statement, float(np.sqrt(np.mean(off**2))) / self.size, self.limit)

    def exchange(self) -> Check:
        """F(N, P, −a) = −F(P, N, a): what leaves one cell enters the other."""
        x = self.draw()
        off = self.network(x) + self.network(self.experiment.exchange(x))
        return self.check(
            "exchange", "the flux changes its sign when the cells are exchanged and n is reversed", 0.5 * off
        )

    def linearity(self) -> Check:
        """F is linear in the unknown: ½F(u) + ½F(v) = F(½u + ½v), and F(0, 0) = 0."""
        x, y = self.draw(), self.draw()
        states = [each.name for each in self.experiment.states]
        y = {**x, **{name: y[name] for name in states}}
        middle = {**x, **{name: 0.5 * (x[name] + y[name]) for name in states}}
        nothing = {**x, **{name: np.zeros(POINTS) for name in states}}
        off = 0.5 * (self.network(x) + self.network(y)) - self.network(middle)
        both = np.hypot(off, self.network(nothing))
        return self.check("linearity", f"the flux is linear in {self.experiment.equation.unknown}", both)

    def equal_states(self) -> Check:
        """F(u, u) = f(u) a·n, which is 0 without transport."""
        x = self.draw()
        P, N = (each.name for each in self.experiment.states)
        x[N] = x[P]
        still = self.experiment.velocity is None
        meaning = "no flux between equal states" if still else "between equal states the flux is f(u) a·n"
        return self.check("limit", meaning, self.network(x) - self._transport_flux(x, x[P]))

    def units(self) -> Check:
        """F(rescaled variables) = factor · F(variables) when the units of length and time are changed."""
        x, y, factor = self._rescale()
        off = self.network(y) / factor - self.network(x)
        return self.check("units", "the flux does not depend on the units of length and time", off)

    def _rescale(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], Float[np.ndarray, " points"]]:
        """Random experiments, the same in other units, and the factor of the flux; only those that stay in range."""
        x = self.experiment.draw(20 * POINTS, self.rng)
        lengths, times = np.exp(self.rng.uniform(-np.log(REACH), np.log(REACH), (2, 20 * POINTS)))

        def rescale_values(variable: Variable) -> np.ndarray:
            return x[variable.name] * lengths ** float(variable.unit.length) * times ** float(variable.unit.time)

        y = {each.name: rescale_values(each) for each in self.experiment.variables}
        inside = np.all([self._in_range(each, y) for each in self.experiment.variables], axis=0)
        kept = np.flatnonzero(inside)[:POINTS]
        flux_unit = self.experiment.unit
        factor = lengths ** float(flux_unit.length) * times ** float(flux_unit.time)
        return ({n: v[kept] for n, v in x.items()}, {n: v[kept] for n, v in y.items()}, factor[kept])

    def _in_range(self, variable: Variable, x: Samples) -> np.ndarray:
        # A velocity drawn as a Péclet number has no range of its own, and that number has no unit.
        if variable.turns and self.experiment.peclet is not None:
            return np.ones(len(x[variable.name]), bool)
        return (x[variable.name] >= variable.low) & (x[variable.name] <= variable.high)

    def homogeneity(self, centre: float) -> Check:
        """F(c + s v) − f(c) a = s² (F(c + v) − f(c) a), for fluxes that are not linear; c is where f′ = 0."""
        x = self.draw()
        s = self.rng.uniform(0.5, 1.0, POINTS)
        at = self._transport_flux(x, np.full(POINTS, centre))
        nearer = {each.name: centre + s * (x[each.name] - centre) for each in self.experiment.states}
        off = (self.network({**x, **nearer}) - at) - s**2 * (self.network(x) - at)
        u = self.experiment.equation.unknown
        words = f"in {u}" if centre == 0 else f"in {u} - {centre:g}, where f' = 0, but for f there"
        return self.check("homogeneity", f"the flux is of degree 2 {words}", off)

    def _transport_flux(self, x: Samples, u: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
        """f(u) a·n; 0 without transport."""
        velocity, equation = self.experiment.velocity, self.experiment.equation
        if velocity is None:
            return np.zeros(POINTS)
        carried: Float[np.ndarray, " points"] = x[velocity.name] * evaluate(equation.transported, {equation.u: u}, np)
        return carried


def logarithmic_slopes(probe: Probe, names: tuple[str, ...]) -> Float[np.ndarray, "points names"]:
    """∂ log|F|/∂ log x of positive variables, by central differences, between the extreme states."""
    step = 0.15
    experiment = probe.experiment
    P, N = experiment.states
    x = probe.draw()
    x |= {P.name: np.full(POINTS, P.high), N.name: np.full(POINTS, N.low)}
    for variable in experiment.variables:
        if variable.positive:  # so that both neighbours are in range
            x[variable.name] = np.exp(
                probe.rng.uniform(np.log(variable.low) + step, np.log(variable.high) - step, POINTS)
            )
    slopes = []
    for name in names:
        ends = [np.abs(probe.network({**x, name: x[name] * np.exp(side * step)})) for side in (1, -1)]
        slopes.append(np.log(ends[0] / ends[1]) / (2 * step))
    return np.stack(slopes, axis=1)


@runtime_checkable
class ReducedFunction(Protocol):
    """The function g of a reduced flux, its scale, and the relative error of the flux, such as a trained network."""

    @property
    def scale(self) -> float:
        """The size of g where the flux has its usual size."""

    @property
    def error(self) -> float:
        """Root mean square of the flux's error over that of the fluxes."""

    def function(self, columns: Float[np.ndarray, "*batch columns"]) -> Float[np.ndarray, "*batch"]:
        """The values of g for columns."""


@dataclass(frozen=True)
class Separation:
    """Two groups of columns, by number, and whether g is the sum or the product of a function of each."""

    groups: tuple[tuple[int, ...], tuple[int, ...]]
    product: bool

    def combine(self, first: sp.Expr, second: sp.Expr) -> sp.Expr:
        """The formula of g from those of its two parts."""
        return first * second if self.product else first + second

    def describe(self, names: tuple[str, ...]) -> str:
        """The property in words."""
        one, other = (", ".join(names[k] for k in group) for group in self.groups)
        return f"g is the {'product' if self.product else 'sum'} of a function of {one} and one of {other}"


def find_separation(network: ReducedFunction, table: Table) -> tuple[Separation | None, Check | None]:
    """The division of the columns under which the network's g separates best, and its check.

    The separation is None if g differs from the best sum and product by more than three times the network's error; both
    are None for one column, or more than MOST_COLUMNS.
    """
    tried = []
    for separation in _divisions(table.X.shape[1]):
        with np.errstate(all="ignore"):
            one, other = separate(network, table, separation)
            off = table.y - (one * other if separation.product else one + other)
        # In units of the fluxes, as the network's error is.
        defect = float(np.sqrt(np.mean(off**2))) / network.scale
        tried.append((defect if np.isfinite(defect) else np.inf, separation))
    if not tried:
        return None, None
    # Sums come first, and the fewest columns in a group: ties are decided by order.
    defect, best = min(tried, key=lambda each: each[0])
    check = Check("separability", best.describe(table.names), defect, VIOLATION_RATIO * network.error)
    return (best if check.holds else None), check


def _divisions(columns: int) -> Iterator[Separation]:
    if not 2 <= columns <= MOST_COLUMNS:
        return
    for product in (False, True):
        for size in range(1, columns // 2 + 1):
            for group in combinations(range(columns), size):
                rest = tuple(k for k in range(columns) if k not in group)
                # A half and its complement are one division.
                if 2 * size < columns or group < rest:
                    yield Separation((group, rest), product)


def separate(
    network: ReducedFunction, table: Table, separation: Separation
) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " rows"]]:
    """The values of the two parts of g in the rows of a table.

    The network is evaluated at points that have one group of columns from a row and the other from an anchor, one of
    ANCHORS rows. For a product, the parts come from the best approximation of rank one between anchors; for a sum,
    they are means over the anchors.
    """
    rows = np.unique(np.linspace(0, len(table.X) - 1, ANCHORS).astype(int))
    anchors = table.X[rows]
    one, other = separation.groups
    across = _pairs(network, table.X, anchors, other)  # g(x of a row, y of an anchor)
    along = _pairs(network, table.X, anchors, one)  # g(x of an anchor, y of a row)
    core = across[rows]
    if not separation.product:
        return across.mean(axis=1), along.mean(axis=1) - core.mean()
    left, sizes, right = np.linalg.svd(core)
    return across @ right[0], along @ left[:, 0] / sizes[0]


def _pairs(
    network: ReducedFunction, X: Float[np.ndarray, "rows columns"], anchors: np.ndarray, group: tuple[int, ...]
) -> Float[np.ndarray, "rows anchors"]:
    """The values of g for every row of X with the columns of `group` replaced by those of every anchor."""
    both = np.repeat(X[:, None, :], len(anchors), axis=1)
    both[:, :, list(group)] = anchors[None, :, list(group)]
    return network.function(both)
