"""The paper's lemmas and theorems, sentence by sentence, judged from the numbers alone."""

from collections.abc import Sequence

import numpy as np

from fluxforge.paper.studies._records import Claim, Verdict
from fluxforge.paper.studies._theorems_result import BoundGroup, CounterexampleRow, Result, Smaller

EXACT = 1e-11
# A bias that is no bias.
VANISHES = 1e-3
NEAR_ONE = 0.01
SHARP = 1e-3


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
    right = all(row.nonzeros == row.printed for row in rows) and worst <= EXACT
    same = sum(row.nonzeros == row.printed for row in rows)
    evidence = f"counts agree for {same} of {len(rows)} shapes, largest error on {result.meshes} meshes {worst:.1e}"
    text = "an L-layer GNN with m-layer ReLU MLPs reproduces F on any graph with exactly 2m(L+1)+4 non-zero parameters"
    return Claim("lemma, existence", text, "holds" if right else "does not hold", evidence)


def _judge_update_count(result: Result) -> Claim:
    """The update of the first layer: all non-zeros, less 2m of its messages and 2m of every later layer."""
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
    verdict: Verdict = "holds" if same == len(rows) else "does not hold"
    return Claim(
        "lemma, update count", "the update network has a total of 3+(m−1) non-zero parameters", verdict, evidence
    )


def _judge_minimality(result: Result) -> Claim:
    """The lemma says "cannot have a non-zero error"; its proof shows, and the theorem uses, that zero is meant."""
    fewer = _find_smaller(result)
    evidence = "; ".join(
        f"{row.nonzeros} non-zeros fit two-cell data to {row.training_error:.0e} and err by up to "
        f"{row.worst_error:.1e} on {result.meshes} meshes ({name})"
        for name, row in fewer.items()
    )
    text = "fewer than 2m(L+1)+4 non-zero parameters cannot give a zero error on the training set"
    verdict: Verdict = "does not hold" if fewer else "holds"
    return Claim("lemma, minimality", text, verdict, evidence or "no smaller network fits")


def _find_smaller(result: Result) -> dict[str, Smaller]:
    """Networks with fewer non-zeros than the lemma's that fit the training set."""
    return {
        name: row
        for name, row in result.minimality.items()
        if row.nonzeros < row.printed_minimum and row.training_error <= EXACT
    }


def _judge_optimality(result: Result) -> Claim:
    """The theorem assumes η < C(K)/(N − K), C(K) the least error of K non-zeros: no η if C(K) = 0 for some K < N."""
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
    found = result.largest_change
    text = "with normalised temperatures and the Fourier condition, Σ α A/δ (T_N − T_P) ≤ 2 V/Δt"
    evidence = f"largest Δt/V |Σ α A/δ (T_N − T_P)| on {result.meshes} meshes: {found:.3f}"
    return Claim("change of a step", text, "holds" if found <= 2.0 else "does not hold", evidence)


def _verdict_of(good: int, of: int) -> Verdict:
    """Under a condition if it is so of some networks."""
    return "holds" if good == of else "holds under a condition" if good else "does not hold"


def _judge_unit_weights(result: Result) -> Claim:
    """The statement is about the minimiser of |W₂| + |w| with W₂w = 1, not about an optimiser that stops before it."""
    found = result.least_l1
    sizes = [abs(abs(each) - 1.0) for pair in found.minimisers for each in pair]
    signs = [each < 0.0 for pair in found.minimisers for each in pair]
    right = max(sizes) <= EXACT
    verdict: Verdict = "does not hold" if not right else "holds under a condition" if any(signs) else "holds"
    pairs = " and ".join(f"({first:g}, {second:g})" for first, second in found.minimisers)
    rows = result.linear.weights
    off = [max(abs(abs(row.flux) - 1.0), abs(abs(row.message) - 1.0)) for row in rows]
    products = [abs(row.flux * row.message - 1.0) for row in rows]
    evidence = (
        f"with W₂w = 1 the least |W₂| + |w| is {found.least:g}, by the inequality of means, at (W₂, w) = {pairs}. "
        f"Of {len(rows)} linear networks trained with ℓ¹, {sum(each <= NEAR_ONE for each in off)} have come to it "
        f"within {NEAR_ONE:g}; the product is within {max(products):.1g} of 1 in all"
    )
    text = "ℓ¹ regularisation leads to W₂ = w_agg = 1"
    return Claim("weights become one", text, verdict, evidence, "up to a common sign" if right and any(signs) else "")


def _judge_simple_weights(result: Result) -> Claim:
    found = result.simple_weights
    off = float(np.max(np.abs(np.subtract(found.solution, (1.0, 1.0, 1.0, 0.0)))))
    right = found.rank == 4 and off <= EXACT
    text = "a linear network that is exact on the training set has W₁ = W₃ = W₂w = 1 and Δt/V W₂b + b_u = 0"
    evidence = (
        f"as unknowns of the training set these four have rank {found.rank}, smallest singular value "
        f"{found.smallest_singular_value:.2g}, and the only solution is theirs to {off:.0e}"
    )
    return Claim("lemma, simple weights", text, "holds" if right else "does not hold", evidence)


def _judge_biases(result: Result) -> Claim:
    rows = result.linear.weights
    largest = [max(abs(row.message_bias), abs(row.bias)) for row in rows]
    gone = sum(each <= VANISHES for each in largest)
    evidence = (
        f"{gone} of {len(rows)} linear networks trained with ℓ¹ end with both biases below {VANISHES:g}; the largest "
        f"left is {max(largest):.2g}"
    )
    return Claim("biases vanish", "ℓ¹ regularisation leads to b_agg = b_u = 0", _verdict_of(gone, len(rows)), evidence)


def _judge_first_bound(result: Result) -> Claim:
    broken = [each for each in result.counterexamples if each.name == "opposite biases" and each.ratio > 1]
    return _judge_bound(
        "first bound",
        "a one-layer GNN with training error ε errs by less than ε (4 + 4/Δt + N) on any graph",
        [result.linear],
        broken,
    )


def _judge_neighbours(result: Result) -> Claim:
    """The proof bounds |N(i)| of a cell of the new mesh by N, so that N has to be that mesh's."""
    found = result.neighbours
    verdict: Verdict = "holds" if found.training >= found.meshes else "does not hold"
    evidence = (
        f"a cell of the training set has at most {found.training} neighbour{'s' * (found.training != 1)}, one of "
        f"{result.meshes} unseen meshes up to {found.meshes}: the proof's last step, ε|N(i)| ≤ εN, needs the "
        "second, as section 4.2 defines N; the bounds here are computed with it"
    )
    return Claim("N of the training set", "N is the maximum number of neighbors in the training set", verdict, evidence)


def _judge_second_bound(result: Result) -> Claim:
    broken = [each for each in result.counterexamples if each.name != "opposite biases" and each.ratio > 1]
    text = "a deep GNN with loss below ε < η errs by less than 2ε (1 + 2/Δt) on any graph"
    return _judge_bound("second bound", text, list(result.deep.values()), broken)


def _judge_bound(name: str, text: str, groups: Sequence[BoundGroup], broken: Sequence[CounterexampleRow]) -> Claim:
    """Does not hold if broken with every hypothesis met; under a condition if broken only without one of them."""
    met = sum(group.violations_with_all_hypotheses for group in groups)
    verdict: Verdict = "does not hold" if met else "holds under a condition" if broken else "holds"
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
    """Necessary where no longer step is stable; the paper sums over neighbouring cells, we over held walls too."""
    rows = result.fourier
    sharp = [row.family for row in rows if row.ratio_cells <= 1.0 + SHARP]
    verdict: Verdict = "holds" if len(sharp) == len(rows) else "holds under a condition" if sharp else "does not hold"
    by_cells, with_walls = [row.ratio_cells for row in rows], [row.ratio for row in rows]
    evidence = (
        f"largest stable step over Fourier's, summed over cells as printed: {_format_span(by_cells)}, sharp on "
        f"{', '.join(sharp) or 'no family'}; with held walls in the sum: {_format_span(with_walls)}"
    )
    if min(with_walls) >= 1.0 - SHARP:
        evidence += ", so that it is sufficient"
    return Claim(
        "Fourier condition", "to be stable, the time step must satisfy the Fourier condition", verdict, evidence
    )


def _format_span(values: list[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"
