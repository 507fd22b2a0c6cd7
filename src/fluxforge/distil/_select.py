"""Which formula of a front to believe."""

import math

from fluxforge.distil._front import Candidate, Front
from fluxforge.errors import InputError

PRICE = 0.2
"""What a symbol costs: it has to lower the error by the factor exp(−0.2), that is by a fifth or so."""

FLOOR = 1e-5
"""Errors below this are all the same: no network is known better."""


def knee(front: Front) -> Candidate:
    """Argmin of log max(error, 10⁻⁵) + 0.2 · complexity.

    Where the error stops falling by a fifth per symbol, the formula is found and what follows describes the network's
    own error: that is smooth, so longer formulas go on approaching it, but slowly. The rule knows the front alone. On
    tables with smooth errors of 0.1, 1 and 3 % every price from 0.15 to 0.25 chooses the formula they were made with;
    0.1 follows the network's error too far at 3 %, 0.3 leaves out the source of a cell.
    """
    if not front.candidates:
        raise InputError("front: there is no candidate to choose from")
    return min(front, key=lambda candidate: math.log(max(candidate.error, FLOOR)) + PRICE * candidate.complexity)
