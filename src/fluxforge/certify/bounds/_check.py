"""A bound against the errors a network makes."""

from collections.abc import Mapping

import jax
import numpy as np

from fluxforge.certify.bounds._errors import ROUND_OFF, errors, worst
from fluxforge.certify.bounds._records import Bound, BoundCheck, Hypothesis
from fluxforge.data import Problem
from fluxforge.errors import InputError
from fluxforge.gnn import Network
from fluxforge.graph import put


def training_error(network: Network, training: Problem, eps: float | None) -> tuple[float, Hypothesis]:
    """ε, the largest error in any cell of the training set unless it is given, and whether it is one."""
    met = np.asarray(errors(network, training))
    found, mean = float(met.max()), float(met.mean())
    chosen = max(found, ROUND_OFF) if eps is None else eps
    evidence = f"largest {found:.3g} in a cell, ε = {chosen:.3g}; the mean is {mean:.3g}"
    return chosen, Hypothesis("training error", found <= chosen, evidence)


def compared(
    bound: Bound, network: Network, problems: Mapping[str, Problem], *, corrected: float | None = None
) -> BoundCheck:
    """The largest error over all problems beside the bound."""
    worst_error, where = worst({mesh: errors(network, each) for mesh, each in problems.items()})
    ratio = worst_error / bound.value
    found = None
    if ratio > 1.0:
        found = jax.tree.map(lambda leaf: put(np.asarray(leaf)[where.problem]), problems[where.mesh])
    return BoundCheck(bound, worst_error, ratio, where, corrected, found)


def check_given(problems: Mapping[str, Problem]) -> None:
    """Refuse to judge a theorem on nothing."""
    if not problems or any(each.dt.ndim != 1 or not each.dt.size for each in problems.values()):
        raise InputError("problems: give at least one mesh, and on each a batch of at least one problem")
