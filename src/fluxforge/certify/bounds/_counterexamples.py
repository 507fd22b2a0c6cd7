"""Networks that fit a training set and yet do what the printed theorems say they cannot, measured.

| network | fits the readings | so the print lacks |
| --- | --- | --- |
| opposite biases, linear | all without faces | that each bias is small, not their sum alone |
| memorising, padded to N_sparse non-zeros | all without faces | that N_sparse is a minimum |
| saturated, padded to N_sparse non-zeros | all | that N_sparse non-zeros mean the lemma's structure |
| one-sided, the lemma's structure | corners, positive | that something drives the update negative |
| late, the lemma's count and no biases | corners, negated, positive | that the first layer does the work |

Each takes the problems to err on, and the training sets of `readings`.
"""

from collections.abc import Callable, Mapping

from fluxforge.certify.bounds._deep import check_deep_bound
from fluxforge.certify.bounds._errors import largest_error
from fluxforge.certify.bounds._linear import check_linear_bound
from fluxforge.certify.bounds._records import BoundCheck, Counterexample
from fluxforge.data import Problem
from fluxforge.gnn import Network
from fluxforge.gnn.exact import (
    LinearWeights,
    biased_network,
    late_network,
    linear_network,
    linear_weights,
    memorising_network,
    needed_bound,
    nonzeros,
    one_sided_network,
    sparse_count,
)

# The training pair: V = √3, A/δ = √3 to the other cell and 2√3 to a face.
VOLUME = 3.0**0.5
LAYERS, DEPTH, WIDTH = 2, 2, 8


def tight_linear_weights(eps: float, dt: float) -> LinearWeights:
    """The linear network whose error comes nearest to the bound: ε (4/Δt + N) where Fo = 1, V = √3 and N ≥ 2.

    It has |p| = ε and b_u = 0, and meets every corner case with an error of ε.
    """
    return LinearWeights(
        temperature=1.0 - 2.0 * eps,
        source=1.0 - 2.0 * eps / dt,
        message=1.0 - 2.0 * eps / dt,
        message_bias=eps * VOLUME / dt,
    )


def offset_counterexample(
    problems: Mapping[str, Problem], training: Mapping[str, Problem], *, size: float = 1.0
) -> Counterexample:
    """b_agg = `size` and b_u = −Δt/√3 b_agg: no error where every cell has one neighbour and Δt/V is the same."""
    network = linear_network(LinearWeights(message_bias=size, bias=-_step(training) / VOLUME * size))
    claim = "a linear network with a training error of at most ε errs by at most ε (4 + 4/Δt + N)"
    return _measured("opposite biases", claim, network, problems, training=training, fits="signed")


def memorised_counterexample(problems: Mapping[str, Problem], training: Mapping[str, Problem]) -> Counterexample:
    """`memorising_network` with idle parameters added up to N_sparse: its loss is η N_sparse, the claimed minimum."""
    dt = _step(training)
    network = memorising_network(
        LAYERS,
        DEPTH,
        WIDTH,
        bound=needed_bound(1.0, dt, weight=VOLUME, fourier=dt),
        ratio=dt / VOLUME,
        nonzeros=sparse_count(LAYERS, DEPTH),
    )
    claim = "N_sparse non-zeros and a training error of at most ε give an error of at most 2ε (1 + 2/Δt)"
    return _measured("memorising", claim, network, problems, training=training, fits="signed")


def saturated_counterexample(problems: Mapping[str, Problem], training: Mapping[str, Problem]) -> Counterexample:
    """`biased_network` with B just what the training set needs: wrong as soon as a flux exceeds every one in training.

    It fits the strongest reading, faces included, and has N_sparse non-zeros, four of them idle.
    """
    dt = _step(training)
    bound = needed_bound(1.0, dt, weight=2.0 * VOLUME, fourier=5.0 * dt)
    network = biased_network(LAYERS, DEPTH, WIDTH, bound, nonzeros=sparse_count(LAYERS, DEPTH))
    claim = "N_sparse non-zeros and a training error of at most ε give an error of at most 2ε (1 + 2/Δt)"
    return _measured("saturated", claim, network, problems, training=training, fits="faces")


def one_sided_counterexample(
    problems: Mapping[str, Problem], training: Mapping[str, Problem], *, slope: float = -1.0
) -> Counterexample:
    """T' = slope · F where F < 0, which neither the corner cases nor samples in [0, 1] ever see."""
    network = one_sided_network(LAYERS, DEPTH, WIDTH, slope)
    claim = "“by symmetry, the same inequalities hold for x < 0”"
    return _measured("one-sided", claim, network, problems, training=training, fits="positive")


def late_counterexample(
    problems: Mapping[str, Problem], training: Mapping[str, Problem], *, share: float = 0.5
) -> Counterexample:
    """Wrong where exchange or source turn the sign of T, as in no corner case nor its negative; see `late_network`."""
    network = late_network(LAYERS, DEPTH, WIDTH, share)
    claim = "“it is easy to see that we need the first layer to implement F”, and the rest to hand it on"
    return _measured("late", claim, network, problems, training=training, fits="negated")


def _measured(
    name: str,
    claim: str,
    network: Network,
    problems: Mapping[str, Problem],
    *,
    training: Mapping[str, Problem],
    fits: str,
) -> Counterexample:
    check: Callable[[Network, Problem, Mapping[str, Problem]], BoundCheck] = (
        check_linear_bound if linear_weights(network) is not None else check_deep_bound
    )
    reached = {reading: largest_error(network, each) for reading, each in training.items()}
    found = check(network, training[fits], problems)
    return Counterexample(name, claim, network, nonzeros(network), reached, fits, found)


def _step(training: Mapping[str, Problem]) -> float:
    return float(training["corners"].dt[0])
