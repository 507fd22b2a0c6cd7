"""The paper's lemmas and theorems, tested: bounds, hypotheses, and networks that contradict them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from msgspec import structs

from fluxforge import recipe
from fluxforge.certify import bounds
from fluxforge.data._meshes import meshes
from fluxforge.data._problem import Problem
from fluxforge.data._source import source
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._network import Network, cast
from fluxforge.gnn.exact import (
    biased_network,
    linear_weights,
    memorising_network,
    needed_bound,
    nonzeros,
    sparse_count,
    sparse_network,
)
from fluxforge.mesh._boundary import Neumann
from fluxforge.mesh._build import dual
from fluxforge.mesh._generate import FAMILIES
from fluxforge.mesh._parameters import fourier_step
from fluxforge.paper.studies._records import StudyConfig
from fluxforge.paper.studies._theorems_result import (
    BoundGroup,
    BoundTest,
    CounterexampleRow,
    FourierRow,
    LeastL1,
    LemmaRow,
    LinearGroup,
    Neighbours,
    Result,
    SimpleWeights,
    Smaller,
    Weights,
    judge,
)
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.scheme._scheme import Hop
from fluxforge.train._train import train

__all__ = ["Config", "Result", "judge", "run"]

NAME = "theorems"
DT = 0.1
SHAPES = tuple((layers, depth) for layers in (1, 2, 3) for depth in (2, 3, 4))
FAMILY_SIZE = 8
# Relative sizes of noise on the lemma's weights, for networks near the sparse solution, as in the second theorem.
NOISE = (1e-4, 1e-3, 1e-2)


@dataclass(frozen=True)
class Config(StudyConfig):
    """Number and size of the meshes on which bounds are tested, and steps and seeds of the trained networks."""

    meshes: int = 200
    cells: int = 150
    steps: int = 20_000
    seeds: int = 16


def run(config: Config, folder: Path | None = None, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """Measure the claims of the appendix; it takes seconds, without the training of two groups of networks."""
    with jax.enable_x64(True):
        tell("meshes", 0, 5)
        spec = recipe.Meshes(meshes=config.meshes, cells=(config.cells, config.cells))
        unseen = {f"{mesh.origin} ({k})": mesh for k, mesh in enumerate(meshes(spec, 7))}
        problems = _join_problems(bounds.roomy_problems(unseen, jax.random.key(3), count=2, dt=DT))
        training = bounds.draw_readings(jax.random.key(1), dt=DT)
        tell("the lemma", 1, 5)
        lemma = _measure_lemma(problems)
        minimality = _measure_minimality(problems, training)
        neighbours = Neighbours(_count_messages(training["signed"]), max(map(_count_messages, problems.values())))
        tell("counterexamples", 2, 5)
        counterexamples = _measure_counterexamples(problems, training)
        tell("bounds on trained networks", 3, 5)
        linear, deep = _test_linear_bound(config, problems), _test_deep_bound(config, problems, training)
        tell("Fourier's condition", 4, 5)
        return Result(
            experiment=NAME,
            dt=DT,
            lemma=lemma,
            minimality=minimality,
            simple_weights=_solve_simple_weights(training["signed"]),
            least_l1=find_least_l1(),
            neighbours=neighbours,
            largest_change=_find_largest_change(problems),
            counterexamples=counterexamples,
            linear=linear,
            deep=deep,
            fourier=_measure_fourier(),
            meshes=config.meshes,
        )


def _join_problems(problems: Mapping[str, Problem]) -> dict[str, Problem]:
    """All meshes as one batch; they are already padded to one size."""
    joined = jax.tree.map(lambda *leaves: jnp.concatenate([jnp.asarray(leaf) for leaf in leaves]), *problems.values())
    return {f"{len(problems)} unstructured meshes": joined}


def _measure_lemma(problems: Mapping[str, Problem]) -> list[LemmaRow]:
    """Number of non-zeros and largest error of the lemma's network for several L and m."""
    networks = {(layers, depth): sparse_network(layers, depth, 4) for layers, depth in SHAPES}
    return [
        LemmaRow(*shape, nonzeros(network), sparse_count(*shape), _find_worst_error(network, problems))
        for shape, network in networks.items()
    ]


def _find_worst_error(network: Network, problems: Mapping[str, Problem]) -> float:
    return max(bounds.largest_error(network, each) for each in problems.values())


def _solve_simple_weights(training: Problem) -> SimpleWeights:
    """(W₁, W₂w, W₃, Δt/V W₂b + b_u) of an exact linear network, by least squares of T' over T, Δt/V Σe, Δt S and 1.

    The solution is unique, and that of the lemma, if the four columns are independent on the training set.
    """
    T, S, dt = (np.asarray(each, float) for each in (training.T, training.S, training.dt))
    answer = np.asarray(training.answer, float)
    source_term = dt.reshape(-1, *(1,) * (S.ndim - 1)) * S
    columns = np.stack([each.ravel() for each in (T, answer - T - source_term, source_term, np.ones_like(T))], axis=1)
    solution, _, rank, sizes = np.linalg.lstsq(columns, answer.ravel(), rcond=None)
    return SimpleWeights(solution.tolist(), int(rank), float(sizes.min()))


def find_least_l1() -> LeastL1:
    """All minimisers (W₂, w) of |W₂| + |w| subject to W₂w = 1, in exact arithmetic, from the stationary points."""
    x = symbol("x", "positive")
    # w = 1/W₂ has the sign of W₂, so that it is enough to minimise x + 1/x for x = |W₂| > 0.
    sizes = sp.solve(sp.diff(x + 1 / x, x), x)
    least = min(size + 1 / size for size in sizes)
    pairs = [(sign * size, sign / size) for sign in (1, -1) for size in sizes if size + 1 / size == least]
    return LeastL1(float(least), [[float(first), float(second)] for first, second in pairs])


def _count_messages(problems: Problem) -> int:
    """The largest number of messages to a cell, including those of walls."""
    around = problems.graph
    return int((around.hops[Hop.EDGE].mask.sum(axis=-1) * around.live).max())


def _measure_minimality(problems: Mapping[str, Problem], training: Mapping[str, Problem]) -> dict[str, Smaller]:
    """Two networks with fewer non-zeros than the lemma's, L = m = 2: exact on bounded data, or on two cells only."""
    everywhere = needed_bound(1.0, DT, weight=100.0, fourier=1.0)
    two_cells = needed_bound(1.0, DT, weight=3.0**0.5, fourier=DT)
    networks = {
        "exact on bounded data": biased_network(2, 2, 8, everywhere),
        "exact on two cells only": memorising_network(2, 2, 8, bound=two_cells, ratio=DT / 3.0**0.5),
    }
    return {
        name: Smaller(
            nonzeros=nonzeros(network),
            printed_minimum=sparse_count(2, 2),
            training_error=bounds.largest_error(network, training["signed"]),
            worst_error=_find_worst_error(network, problems),
        )
        for name, network in networks.items()
    }


def _measure_counterexamples(
    problems: Mapping[str, Problem], training: Mapping[str, Problem]
) -> list[CounterexampleRow]:
    makers = (
        bounds.offset_counterexample,
        bounds.memorised_counterexample,
        bounds.saturated_counterexample,
        bounds.one_sided_counterexample,
        bounds.late_counterexample,
    )
    counterexamples = [make(problems, training) for make in makers]
    return [
        CounterexampleRow(
            name=each.name,
            claim=each.claim,
            nonzeros=each.nonzeros,
            fits=each.fits,
            training_error=dict(each.training),
            **vars(_describe(each.check)),
        )
        for each in counterexamples
    ]


def _describe(check: bounds.BoundCheck) -> BoundTest:
    return BoundTest(
        eps=check.bound.eps,
        bound=check.bound.value,
        worst_error=check.worst_error,
        ratio=check.ratio,
        where=str(check.where),
        corrected_bound=check.corrected,
        hypotheses=list(check.hypotheses),
    )


def _train_networks(config: Config, changes: recipe.Changes) -> tuple[list[Network], Problem]:
    """Train networks of a recipe like the paper's; returns them and the graphs they were trained on, in float64."""
    base = recipe.override(recipe.load("generalisation"), {"seeds": config.seeds, "training.steps": config.steps})
    spec = recipe.override(base, {"data.negated": True, "data.time_step": DT, **changes, **config.changes})
    done = train(spec, source(spec))
    training = source(spec, dtype="float64").problems  # type: ignore[attr-defined]
    return [cast(done.member(k), "float64") for k in done.of_arm("sparse")], training


def _test_linear_bound(config: Config, problems: Mapping[str, Problem]) -> LinearGroup:
    """Test the first bound on trained linear networks, one per seed."""
    shape = {"network.layers": 1, "network.depth": 1, "arms": {"sparse": 1e-3}}
    networks, training = _train_networks(config, shape)
    weights = [Weights(**values._asdict()) for each in networks if (values := linear_weights(each)) is not None]
    group = _summarise([bounds.check_linear_bound(each, training, problems) for each in networks])
    return LinearGroup(**structs.asdict(group), weights=weights)


def _test_deep_bound(
    config: Config, problems: Mapping[str, Problem], training: Mapping[str, Problem]
) -> dict[str, BoundGroup]:
    """Test the second bound on trained networks, which lack the structure it assumes, and on the lemma's with noise."""
    networks, recipe_problems = _train_networks(config, {"arms": {"sparse": 1e-3}, "training.learning_rate": 3e-3})
    trained = [bounds.check_deep_bound(each, recipe_problems, problems) for each in networks]
    near = [
        bounds.check_deep_bound(_perturb_weights(sparse_network(2, 2, 2), size, seed), training["signed"], problems)
        for size in NOISE
        for seed in range(config.seeds)
    ]
    return {"trained": _summarise(trained), "near the lemma's network": _summarise(near)}


def _perturb_weights(network: Network, size: float, seed: int) -> Network:
    """The network with every parameter multiplied by 1 + size · uniform(−1, 1), so that zeros remain."""
    rng = np.random.default_rng([seed, round(1 / size)])
    return jax.tree.map(
        lambda leaf: leaf * (1 + size * rng.uniform(-1, 1, leaf.shape)) if eqx.is_inexact_array(leaf) else leaf, network
    )


def _summarise(checks: Sequence[bounds.BoundCheck]) -> BoundGroup:
    """The group of all checks: ratios, counts of failing hypotheses and of violations, and the worst check in full."""
    names = [each.name for each in checks[0].hypotheses]
    missing = {name: sum(not h.holds for check in checks for h in check.hypotheses if h.name == name) for name in names}
    worst = max(checks, key=lambda check: check.ratio)
    return BoundGroup(
        networks=len(checks),
        ratios=[check.ratio for check in checks],
        eps=[check.bound.eps for check in checks],
        hypotheses_failing={name: count for name, count in missing.items() if count},
        violations=sum(not check.holds for check in checks),
        violations_with_all_hypotheses=sum(check.bound.applies and not check.holds for check in checks),
        worst=_describe(worst),
    )


def _measure_fourier() -> list[FourierRow]:
    """The largest stable Δt over the Fourier step, with held walls in its sum, and as printed with cells only."""
    rows = []
    for name in FAMILIES:
        mesh = FAMILIES[name](FAMILY_SIZE, 1)
        sufficient = bounds.fourier_is_sufficient(dual(mesh))
        by_cells = sufficient.limit / fourier_step(dual(mesh, Neumann()))
        rows.append(FourierRow(**asdict(sufficient), family=name, ratio_cells=by_cells))
    return rows


def _find_largest_change(problems: Mapping[str, Problem]) -> float:
    """The maximum of |Δt/V Σ α A/δ (T_N − T_P)| over all problems; the proofs assume that it is at most 2."""
    return max(float(jnp.abs(p.answer - p.T - p.dt[:, None] * p.S).max()) for p in problems.values())
