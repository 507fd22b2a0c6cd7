"""|M_θ(T) − F(T)| < 2ε (1 + 2/Δt): the second theorem, for deep networks of the lemma's structure.

Such a network computes P relu(u·y) − Q relu(−v·y), y = (T, Δt S, Δt/V (A⁺ Σ e⁺ + A⁻ Σ e⁻)): later layers only scale
either part. The corner cases say of the part P u that its factors of T and Δt S are within ε and ε/Δt of 1, those of
e⁺ and e⁻ within ε/Δt and 2ε/Δt; their negatives say the same of Q v, with e⁺ and e⁻ exchanged. Since Σ|e| ≤ 2V/Δt,
either part is within B = 2ε (1 + 2/Δt) of F. Where u·y and v·y have one sign, T' is one of the parts. Where they do
not, T' is 0 or lies between the parts, one positive and one negative; F lies within B of both, and T' then within B of
F. This needs ε < Δt and Δt + 2ε < 1, or else a corner case may be met by the wrong part.
"""

from collections.abc import Mapping

from fluxforge.certify.bounds._check import check_given, compared, training_error
from fluxforge.certify.bounds._errors import conditions
from fluxforge.certify.bounds._hypotheses import everywhere
from fluxforge.certify.bounds._records import Bound, BoundCheck, Hypothesis
from fluxforge.certify.bounds._structure import count, structure
from fluxforge.certify.bounds._training import NEGATED, Taught, has_cases, taught, unit_pair
from fluxforge.data import CORNER_CASES, Problem
from fluxforge.gnn import Network

NAME = "2ε (1 + 2/Δt)"


def deep_bound(eps: float, dt: float) -> float:
    """2ε (1 + 2/Δt)."""
    return 2.0 * eps * (1.0 + 2.0 / dt)


def largest_from_mean(mean: float, *, graphs: int, cells: int = 2) -> float:
    """|D| |V| times the mean absolute error: all that a loss says of the largest error in a cell."""
    return mean * graphs * cells


def printed_hypothesis(mean: float, *, nonzeros: int, eta: float) -> Hypothesis:
    """L = MAE + η‖θ‖₀ < ε < η, as the body prints it: true of no network with a non-zero parameter."""
    loss = mean + eta * nonzeros
    return Hypothesis("loss below η", loss < eta, f"MAE + η‖θ‖₀ = {loss:.4g}, η = {eta:.4g}")


def check_deep_bound(
    network: Network, training: Problem, problems: Mapping[str, Problem], *, eps: float | None = None
) -> BoundCheck:
    """The theorem on every problem of every mesh; ε is the largest training error in a cell unless it is given."""
    check_given(problems)
    found = {mesh: conditions(each) for mesh, each in problems.items()}
    known = taught(training)
    eps, reached = training_error(network, training, eps)
    hypotheses = (
        count(network),
        structure(network),
        reached,
        has_cases(training, CORNER_CASES[:4], "corner cases"),
        has_cases(training, NEGATED[:3], "their negatives"),
        unit_pair(known),
        *everywhere(found, known, problems),
        _small(eps, known),
    )
    return compared(Bound(NAME, deep_bound(eps, known.dt), eps, hypotheses), network, problems)


def _small(eps: float, known: Taught) -> Hypothesis:
    holds = eps < known.dt and known.dt + 2.0 * eps < 1.0
    return Hypothesis("small ε", holds, f"ε = {eps:.3g}, Δt = {known.dt:.3g}: ε < Δt and Δt + 2ε < 1 are needed")
