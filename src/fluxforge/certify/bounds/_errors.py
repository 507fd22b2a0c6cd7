"""Errors of a network in every cell, the quantities in the theorems' hypotheses, and bounds compared with errors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.data._problem import Problem, exact_step
from fluxforge.errors import InputError
from fluxforge.gnn._network import Network
from fluxforge.graph._padded_graph import put
from fluxforge.loss._loss import step_of
from fluxforge.scheme._scheme import Ghost, Hop


@dataclass(frozen=True)
class Hypothesis:
    """A condition of a theorem, whether it holds, and the evidence in words with numbers."""

    name: str
    holds: bool
    evidence: str


@dataclass(frozen=True)
class Bound:
    """A theorem's bound on the error in any cell, `value`, for a training error of `eps`, and its hypotheses."""

    name: str
    value: float
    eps: float
    hypotheses: tuple[Hypothesis, ...]

    @property
    def applies(self) -> bool:
        """Whether every hypothesis holds."""
        return all(hypothesis.holds for hypothesis in self.hypotheses)


@dataclass(frozen=True)
class Place:
    """A cell of one of the problems posed on a mesh."""

    mesh: str
    problem: int
    cell: int

    def __str__(self) -> str:
        return f"cell {self.cell} of problem {self.problem} on {self.mesh}"


@dataclass(frozen=True)
class BoundCheck:
    """The largest error found, which is `ratio` times the bound, and where.

    `corrected` is the bound that needs no hypothesis on biases, volumes, α or the Fourier condition, if there is one;
    `counterexample` is the problem on which the theorem's own bound was exceeded, or None.
    """

    bound: Bound
    worst_error: float
    ratio: float
    where: Place
    corrected: float | None
    counterexample: Problem | None

    @property
    def holds(self) -> bool:
        """Whether no error exceeded the bound."""
        return self.ratio <= 1.0

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """The hypotheses of the theorem, checked for this network and these problems."""
        return self.bound.hypotheses


@dataclass(frozen=True)
class Counterexample:
    """A network that meets the conditions of a printed statement and violates its conclusion.

    `training` maps each reading of the training set to the largest error on it; `check` compares the errors on other
    problems with the bound, where ε is the error on the reading named `fits`.
    """

    name: str
    claim: str
    network: Network
    nonzeros: int
    training: dict[str, float]
    fits: str
    check: BoundCheck


# Errors below this are round-off. The theorems need ε > 0, so that ε is at least this.
ROUND_OFF = 1e-12


@eqx.filter_jit
def cell_errors(network: Network, problems: Problem) -> Float[Array, "problems cells"]:
    """|M_θ(T) − F(T)| in every cell, 0 in padding."""

    def one(p: Problem) -> Float[Array, " cells"]:
        off = network(p.graph, p.T, p.S, dt=p.dt, parameters=p.parameters) - p.answer
        return jnp.where(p.graph.live, jnp.abs(off), 0.0)

    return jax.vmap(one)(problems)


def largest_error(network: Network, problems: Problem) -> float:
    """ε: the largest error over all cells of all problems."""
    return float(np.asarray(cell_errors(network, problems)).max())


class Conditions(NamedTuple):
    """The quantities in the theorems' hypotheses, in every cell.

    `data`: the largest of |T|, |S| and the neighbours' |T|; `fourier`: Δt/V Σ α A/δ without Neumann faces, `exchange`
    with them; `flux`: Δt/V Σ |α A/δ (T_N − T_P)|; `pace`: Δt/V; `neighbours`: the number of messages received.
    """

    data: Float[Array, "problems cells"]
    fourier: Float[Array, "problems cells"]
    exchange: Float[Array, "problems cells"]
    flux: Float[Array, "problems cells"]
    pace: Float[Array, "problems cells"]
    neighbours: Float[Array, "problems cells"]


@eqx.filter_jit
def measure_conditions(problems: Problem) -> Conditions:
    """The conditions of every problem, 0 in padding."""
    return jax.vmap(_measure_one)(problems)


def _measure_one(p: Problem) -> Conditions:
    edge = p.graph.hops[Hop.EDGE]
    weight = jnp.where(edge.mask, p.parameters["alpha"] * edge.geometry["A"] / edge.geometry["delta"], 0.0)
    shown = edge.at("N", p.graph.shown[Ghost.DIRICHLET].of(p.T))
    flux = jnp.abs(weight * (shown - p.T[:, None]))
    beside = jnp.where(edge.mask, jnp.abs(shown), 0.0).max(axis=1)
    data = jnp.maximum(jnp.maximum(jnp.abs(p.T), jnp.abs(p.S)), beside)
    pace = p.dt / p.graph.V
    conditions = (
        data,
        pace * (edge.geometry["chi"] * weight).sum(axis=1),
        pace * weight.sum(axis=1),
        pace * flux.sum(axis=1),
        pace,
        edge.mask.sum(axis=1).astype(pace.dtype),
    )
    return Conditions(*(jnp.where(p.graph.live, each, 0.0) for each in conditions))


def find_worst(values: Mapping[str, Float[Array, "problems cells"]]) -> tuple[float, Place]:
    """The largest value over meshes, problems and cells, and where it is; a NaN counts as infinite."""
    best, where = -np.inf, Place("", 0, 0)
    for mesh, field in values.items():
        host = np.nan_to_num(np.asarray(field), nan=np.inf)
        problem, cell = np.unravel_index(int(host.argmax()), host.shape)
        if host[problem, cell] > best:
            best, where = float(host[problem, cell]), Place(mesh, int(problem), int(cell))
    return best, where


def training_error(network: Network, training: Problem, eps: float | None) -> tuple[float, Hypothesis]:
    """ε, by default the largest error in a cell of the training set, and the hypothesis that no error exceeds it."""
    errors = np.asarray(cell_errors(network, training))
    largest, mean = float(errors.max()), float(errors.mean())
    chosen = max(largest, ROUND_OFF) if eps is None else eps
    evidence = f"largest {largest:.3g} in a cell, ε = {chosen:.3g}; the mean is {mean:.3g}"
    return chosen, Hypothesis("training error", largest <= chosen, evidence)


def compare_with_bound(
    bound: Bound, network: Network, problems: Mapping[str, Problem], *, corrected: float | None = None
) -> BoundCheck:
    """Compare the largest error over all problems with the bound."""
    worst_error, where = find_worst({mesh: cell_errors(network, each) for mesh, each in problems.items()})
    ratio = worst_error / bound.value
    counterexample = None
    if ratio > 1.0:
        counterexample = jax.tree.map(lambda leaf: put(np.asarray(leaf)[where.problem]), problems[where.mesh])
    return BoundCheck(bound, worst_error, ratio, where, corrected, counterexample)


def check_problems(problems: Mapping[str, Problem]) -> None:
    """Raise InputError if there are no problems."""
    if not problems or any(each.dt.ndim != 1 or not each.dt.size for each in problems.values()):
        raise InputError("problems: give at least one mesh, and for each mesh a batch of at least one problem")


Step = Callable[[Problem], State]


@dataclass(frozen=True)
class Extrapolation:
    """For every network of a stack: mean squared errors over all cells of all meshes, and the largest error."""

    one_step_mse: Float[np.ndarray, " networks"]
    one_step_worst: Float[np.ndarray, " networks"]
    rollout_mse: Float[np.ndarray, " networks"] | None


def extrapolation(networks: Network, problems: Problem, *, rollout: int = 0) -> Extrapolation:
    """Compare a stack of networks with the first-order scheme in one step, and after a rollout of each on its own."""
    squares, worst, later = (np.asarray(value, float) for value in _measure_stack(networks, problems, rollout))
    return Extrapolation(squares, worst, later if rollout else None)


@eqx.filter_jit
def _measure_stack(networks: Network, problems: Problem, rollout: int) -> tuple[Array, Array, Array]:
    arrays, static = eqx.partition(networks, eqx.is_array)
    # One network after the other: their meshes together are a large batch already.
    errors: tuple[Array, Array, Array] = jax.lax.map(
        lambda one: _measure_step(step_of(eqx.combine(one, static)), problems, rollout), arrays
    )
    return errors


def step_errors(step: Step, problems: Problem, *, rollout: int = 0) -> dict[str, float]:
    """Like `extrapolation`, for a step of any kind; by name: `one_step_mse`, `one_step_worst`, `rollout_mse`."""
    squares, worst, later = eqx.filter_jit(lambda problems: _measure_step(step, problems, rollout))(problems)
    return {"one_step_mse": float(squares), "one_step_worst": float(worst), "rollout_mse": float(later)}


def _measure_step(step: Step, problems: Problem, rollout: int) -> tuple[Array, Array, Array]:
    def one(problem: Problem) -> tuple[Array, Array, Array]:
        live = problem.graph.live
        off = jnp.where(live, step(problem) - problem.answer, 0.0)

        def both(_: Any, states: tuple[Array, Array]) -> tuple[Array, Array]:
            ours, theirs = states
            ours = jnp.asarray(step(eqx.tree_at(lambda p: p.T, problem, ours)))
            return jnp.where(live, ours, 0.0), exact_step(problem, theirs)

        ours, theirs = jax.lax.fori_loop(0, rollout, both, (problem.T, problem.T))
        apart = jnp.where(live, ours - theirs, 0.0)
        cells = live.sum()
        return jnp.square(off).sum() / cells, jnp.abs(off).max(), jnp.square(apart).sum() / cells

    squares, worst, later = jax.vmap(one)(problems)
    return squares.mean(), worst.max(), later.mean()
