"""The result of the study of the theorems, and the claims of the paper's lemmas and theorems judged from it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from fluxforge.certify.bounds._errors import Hypothesis
from fluxforge.paper.studies._records import Claim, to_verdict

EXACT = 1e-11
# A bias below this counts as zero.
ZERO_TOLERANCE = 1e-3
ONE_TOLERANCE = 0.01
SHARPNESS_TOLERANCE = 1e-3


class LemmaRow(Struct, frozen=True):
    """The lemma's network of `layers` layers: its non-zeros, the number printed, and its worst error on the meshes."""

    layers: int
    depth: int
    nonzeros: int
    printed: int
    worst_error: float


class Smaller(Struct, frozen=True):
    """A network with fewer non-zeros than printed: its largest error on the training set and on the meshes."""

    nonzeros: int
    printed_minimum: int
    training_error: float
    worst_error: float


class SimpleWeights(Struct, frozen=True):
    """(W₁, W₂w, W₃, Δt/V W₂b + b_u) of an exact linear network, by least squares over the training set.

    `rank` and `smallest_singular_value` are of its matrix; the solution is unique if the rank is 4.
    """

    solution: list[float]
    rank: int
    smallest_singular_value: float


class LeastL1(Struct, frozen=True):
    """The minimum of |W₂| + |w| subject to W₂w = 1, and all minimisers (W₂, w)."""

    least: float
    minimisers: list[list[float]]


class Neighbours(Struct, frozen=True):
    """The largest number of messages to a cell, in the training set and on the meshes."""

    training: int
    meshes: int


@dataclass(frozen=True)
class BoundTest:
    """A bound for a training error ε, the worst error found, which is `ratio` times the bound, and the hypotheses."""

    eps: float
    bound: float
    worst_error: float
    ratio: float
    where: str
    corrected_bound: float | None
    hypotheses: list[Hypothesis]


@dataclass(frozen=True)
class Counterexample:
    """A network that contradicts a printed claim, and its errors on the training set, by reading of the text."""

    name: str
    claim: str
    nonzeros: int
    fits: str
    training_error: dict[str, float]


# Dataclasses, since structs cannot have two bases with fields; the fields of the last base come first.
@dataclass(frozen=True)
class CounterexampleRow(BoundTest, Counterexample):
    """A counterexample with the bound that it exceeds."""


class BoundGroup(Struct, frozen=True):
    """A bound tested on several networks: ratios of error to bound, failing hypotheses, violations, and the worst."""

    networks: int
    ratios: list[float]
    eps: list[float]
    hypotheses_failing: dict[str, int]
    violations: int
    violations_with_all_hypotheses: int
    worst: BoundTest


class Weights(Struct, frozen=True):
    """The weights of a trained linear network."""

    temperature: float
    source: float
    flux: float
    message: float
    message_bias: float
    bias: float


class LinearGroup(BoundGroup, frozen=True):
    """The first bound tested on trained linear networks, with their weights."""

    weights: list[Weights]


class FourierRow(Struct, frozen=True):
    """The largest stable Δt over the Fourier step: with held walls in its sum (`ratio`), as printed (`ratio_cells`)."""

    mesh: str
    cells: int
    fourier: float
    limit: float
    ratio: float
    family: str
    ratio_cells: float


class Result(Struct, frozen=True):
    """The result of the study."""

    experiment: str
    dt: float
    lemma: list[LemmaRow]
    minimality: dict[str, Smaller]
    simple_weights: SimpleWeights
    least_l1: LeastL1
    neighbours: Neighbours
    largest_change: float
    counterexamples: list[CounterexampleRow]
    linear: LinearGroup
    deep: dict[str, BoundGroup]
    fourier: list[FourierRow]
    meshes: int


def judge(result: Result) -> list[Claim]:
    """One claim per lemma, theorem and remark that can be measured."""
    return [
        _judge_existence(result),
        _judge_update_count(result),
        _judge_minimality(result),
        _judge_simple_weights(result),
        _judge_biases(result),
        _judge_unit_weights(result),
        _judge_optimality(result),
        _judge_change(result),
        _judge_first_bound(result),
        _judge_neighbours(result),
        _judge_second_bound(result),
        _judge_stability(result),
    ]


def _judge_existence(result: Result) -> Claim:
    rows = result.lemma
    worst = max(row.worst_error for row in rows)
    same = sum(row.nonzeros == row.printed for row in rows)
    right = same == len(rows) and worst <= EXACT
    evidence = f"counts agree for {same} of {len(rows)} shapes, largest error on {result.meshes} meshes {worst:.1e}"
    text = "an L-layer GNN with m-layer ReLU MLPs reproduces F on any graph with exactly 2m(L+1)+4 non-zero parameters"
    return Claim("lemma, existence", text, to_verdict(right), evidence)


def _judge_update_count(result: Result) -> Claim:
    """Holds if the update of the first layer has as many non-zeros as printed.

    Those are all non-zeros without the 2m of its messages and the 2m of each later layer.
    """
    rows = result.lemma
    counts = [row.nonzeros - 2 * row.depth * row.layers for row in rows]
    printed = [3 + (row.depth - 1) for row in rows]
    same = sum(count == each for count, each in zip(counts, printed, strict=True))
    twice = all(count == 2 * each for count, each in zip(counts, printed, strict=True))
    first = rows[0]
    evidence = (
        f"counts agree for {same} of {len(rows)} shapes: with m = {first.depth} the update has {counts[0]} "
        f"non-zeros, printed {printed[0]}"
    )
    if twice:
        evidence += (
            "; it has 2(3 + (m − 1)) for every shape, as the total 2m(L+1)+4 and the next proof count: a misprint"
        )
    text = "the update network has a total of 3+(m−1) non-zero parameters"
    return Claim("lemma, update count", text, to_verdict(same == len(rows)), evidence)


def _judge_minimality(result: Result) -> Claim:
    """Holds if no smaller network fits the training set exactly.

    The lemma says "cannot have a non-zero error"; its proof shows, and the theorem uses, that zero is meant.
    """
    fewer = _find_smaller(result)
    evidence = "; ".join(
        f"{row.nonzeros} non-zeros fit two-cell data to {row.training_error:.0e} and err by up to "
        f"{row.worst_error:.1e} on {result.meshes} meshes ({name})"
        for name, row in fewer.items()
    )
    text = "fewer than 2m(L+1)+4 non-zero parameters cannot give a zero error on the training set"
    return Claim("lemma, minimality", text, to_verdict(not fewer), evidence or "no smaller network fits")


def _find_smaller(result: Result) -> dict[str, Smaller]:
    """The networks with fewer non-zeros than printed that fit the training set exactly, by name."""
    return {
        name: row
        for name, row in result.minimality.items()
        if row.nonzeros < row.printed_minimum and row.training_error <= EXACT
    }


def _judge_optimality(result: Result) -> Claim:
    """Holds if no smaller network fits.

    The theorem assumes η < C(K)/(N − K), C(K) the least error with K non-zeros: no η > 0 if C(K) = 0 for some K < N.
    """
    fewer = _find_smaller(result)
    text = "a loss of at most ηN + ε requires exactly N = 2m(L+1)+4 non-zeros, for η < min C(K)/(N − K)"
    if not fewer:
        return Claim("optimality", text, "holds", "no smaller network fits, so that its assumption on η can be met")
    least = min(row.nonzeros for row in fewer.values())
    evidence = (
        f"its assumption can be met by no η > 0: {least} non-zeros fit the training set exactly, so that C({least}) = "
        f"0, and ηN is not the minimum either: these have the loss {least}η"
    )
    return Claim("optimality", text, "does not hold", evidence)


def _judge_change(result: Result) -> Claim:
    change = result.largest_change
    text = "with normalised temperatures and the Fourier condition, Σ α A/δ (T_N − T_P) ≤ 2 V/Δt"
    evidence = f"largest Δt/V |Σ α A/δ (T_N − T_P)| on {result.meshes} meshes: {change:.3f}"
    return Claim("change of a step", text, to_verdict(change <= 2.0), evidence)


def _judge_unit_weights(result: Result) -> Claim:
    """Judged by the exact minimisers of |W₂| + |w| with W₂w = 1, since training may stop before it reaches one."""
    minimum = result.least_l1
    sizes = [abs(abs(each) - 1.0) for pair in minimum.minimisers for each in pair]
    signs = [each < 0.0 for pair in minimum.minimisers for each in pair]
    right = max(sizes) <= EXACT
    verdict = to_verdict(right and not any(signs), right)
    pairs = " and ".join(f"({first:g}, {second:g})" for first, second in minimum.minimisers)
    rows = result.linear.weights
    off = [max(abs(abs(row.flux) - 1.0), abs(abs(row.message) - 1.0)) for row in rows]
    products = [abs(row.flux * row.message - 1.0) for row in rows]
    evidence = (
        f"with W₂w = 1 the least |W₂| + |w| is {minimum.least:g}, by the inequality of means, at (W₂, w) = {pairs}. "
        f"Of {len(rows)} linear networks trained with ℓ¹, {sum(each <= ONE_TOLERANCE for each in off)} have reached it "
        f"to within {ONE_TOLERANCE:g}; the product is within {max(products):.1g} of 1 in all"
    )
    text = "ℓ¹ regularisation leads to W₂ = w_agg = 1"
    return Claim("weights become one", text, verdict, evidence, "up to a common sign" if right and any(signs) else "")


def _judge_simple_weights(result: Result) -> Claim:
    weights = result.simple_weights
    off = float(np.max(np.abs(np.subtract(weights.solution, (1.0, 1.0, 1.0, 0.0)))))
    right = weights.rank == 4 and off <= EXACT
    text = "a linear network that is exact on the training set has W₁ = W₃ = W₂w = 1 and Δt/V W₂b + b_u = 0"
    evidence = (
        f"as unknowns of the training set these four have rank {weights.rank}, smallest singular value "
        f"{weights.smallest_singular_value:.2g}, and the only solution is theirs to {off:.0e}"
    )
    return Claim("lemma, simple weights", text, to_verdict(right), evidence)


def _judge_biases(result: Result) -> Claim:
    rows = result.linear.weights
    largest = [max(abs(row.message_bias), abs(row.bias)) for row in rows]
    gone = sum(each <= ZERO_TOLERANCE for each in largest)
    evidence = (
        f"{gone} of {len(rows)} linear networks trained with ℓ¹ end with both biases below {ZERO_TOLERANCE:g}; "
        f"the largest bias is {max(largest):.2g}"
    )
    return Claim(
        "biases vanish", "ℓ¹ regularisation leads to b_agg = b_u = 0", to_verdict(gone == len(rows), gone > 0), evidence
    )


def _judge_first_bound(result: Result) -> Claim:
    broken = [each for each in result.counterexamples if each.name == "opposite biases" and each.ratio > 1]
    return _judge_bound(
        "first bound",
        "a one-layer GNN with training error ε errs by less than ε (4 + 4/Δt + N) on any graph",
        [result.linear],
        broken,
    )


def _judge_neighbours(result: Result) -> Claim:
    """Holds if N of the training set is at least that of the meshes: the proof bounds |N(i)| on a new mesh by N."""
    neighbours = result.neighbours
    verdict = to_verdict(neighbours.training >= neighbours.meshes)
    evidence = (
        f"a cell of the training set has at most {neighbours.training} neighbour{'s' * (neighbours.training != 1)}, "
        f"one of {result.meshes} unseen meshes up to {neighbours.meshes}: the proof's last step, ε|N(i)| ≤ εN, needs "
        "the second, as section 4.2 defines N; the bounds here are computed with it"
    )
    return Claim("N of the training set", "N is the maximum number of neighbors in the training set", verdict, evidence)


def _judge_second_bound(result: Result) -> Claim:
    broken = [each for each in result.counterexamples if each.name != "opposite biases" and each.ratio > 1]
    text = "a deep GNN with loss below ε < η errs by less than 2ε (1 + 2/Δt) on any graph"
    return _judge_bound("second bound", text, list(result.deep.values()), broken)


def _judge_bound(name: str, text: str, groups: Sequence[BoundGroup], broken: Sequence[CounterexampleRow]) -> Claim:
    """Does not hold if violated with all hypotheses met; under a condition if violated only without one of them."""
    met = sum(group.violations_with_all_hypotheses for group in groups)
    verdict = to_verdict(not met and not broken, not met)
    worst = max(max(group.ratios) for group in groups)
    above = sum(group.violations for group in groups)
    evidence = (
        f"error/bound at most {worst:.2g}; above the bound are {above} of "
        f"{sum(group.networks for group in groups)} networks, {met} of them with every hypothesis met"
    )
    if broken:
        evidence += "; counterexamples: " + ", ".join(f"{each.name} (×{each.ratio:.1e})" for each in broken)
    return Claim(name, text, verdict, evidence)


def _judge_stability(result: Result) -> Claim:
    """Holds if on every family no longer Δt is stable, with the sum over neighbouring cells as printed.

    Elsewhere in this package the sum of the Fourier step includes held walls; for these the ratio is reported.
    """
    rows = result.fourier
    sharp = [row.family for row in rows if row.ratio_cells <= 1.0 + SHARPNESS_TOLERANCE]
    verdict = to_verdict(len(sharp) == len(rows), bool(sharp))
    by_cells, with_walls = [row.ratio_cells for row in rows], [row.ratio for row in rows]
    evidence = (
        f"largest stable step over Fourier's, summed over cells as printed: {_format_span(by_cells)}, sharp on "
        f"{', '.join(sharp) or 'no family'}; with held walls in the sum: {_format_span(with_walls)}"
    )
    if min(with_walls) >= 1.0 - SHARPNESS_TOLERANCE:
        evidence += ", so that it is sufficient"
    text = "to be stable, the time step must satisfy the Fourier condition"
    return Claim("Fourier condition", text, verdict, evidence)


def _format_span(values: list[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"
