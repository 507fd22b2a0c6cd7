"""Stability intervals of networks in the form of a flux and of their formulas, beside the best that there are."""

from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp

from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._flux_form import FluxNetwork, learned_part, log_of_total
from fluxforge.gnn._network import cast
from fluxforge.run.carry import Stability
from fluxforge.scheme._tableau import Tableau
from fluxforge.scheme._weighted import face_invariants
from fluxforge.stepping._exponential import amplification, optimal_interval

# A mesh of equilateral triangles: both cells alike, and three faces of equal share.
_CONTRAST, _SHARE = 0.0, 1.0 / 6.0
# Steps are tried from short to long, each 0.2 % longer than the last, up to eight times the best interval.
_FIRST, _GROWTH = 1e-2, 1.002
_POINTS = 400
# |R| − 1 that round-off explains: a polynomial of degree eight of numbers up to a hundred.
_ROUNDED = 1e-9

Coefficients = Callable[[np.ndarray], Sequence[np.ndarray]]


def measure_stability(network: FluxNetwork, formulas: Mapping[str, sp.Expr] | None) -> Stability | None:
    """β of the network, of its formulas, of its integrator and of what stands beside them.

    None for an equation that does more than diffuse, whose modes are not on the negative axis, and for a free network.
    """
    if network.free or set(face_invariants(network.equation)) != {"total", "contrast", "share"}:
        return None
    stages, tableau = len(network.tableau.rows), network.tableau
    best = optimal_interval(stages)
    found = None
    if formulas is not None:
        found = stability_interval(tableau, lambda total: _evaluate(list(formulas.values()), total), best)
    return Stability(
        stages=stages,
        network=stability_interval(tableau, lambda total: _network_values(network, total), best),
        formula=found,
        integrator=stability_interval(tableau, lambda total: [np.ones_like(total)] * (stages - 1), best),
        rkl2=(stages**2 + stages - 2) / 2,
        optimum=best,
    )


def stability_interval(tableau: Tableau, coefficients: Coefficients, best: float) -> float:
    """The largest β such that at every step up to β/2 Fourier steps |R| ≤ 1 for all modes of a uniform mesh."""
    longest = 8.0 * best
    reach = np.geomspace(_FIRST, longest, int(np.log(longest / _FIRST) / np.log(_GROWTH)))
    # Chebyshev points of [−β, 0], 0 left out: R(0) = 1.
    shape = -0.5 * (1.0 - np.cos(np.pi * np.arange(1, _POINTS + 1) / _POINTS))
    # Fo of every cell is β/2, and `total` the sum of two.
    values = [np.broadcast_to(each, reach.shape)[:, None] for each in coefficients(reach)]
    largest = np.abs(amplification(tableau, reach[:, None] * shape, values)).max(axis=1)
    beyond = np.flatnonzero(~(largest <= 1.0 + _ROUNDED))
    return float(reach[-1] if not len(beyond) else 0.0 if beyond[0] == 0 else reach[beyond[0] - 1])


def _evaluate(formulas: Sequence[sp.Expr], total: np.ndarray) -> list[np.ndarray]:
    numbers = {symbol("total"): total, symbol("contrast"): _CONTRAST, symbol("share"): _SHARE}
    with np.errstate(all="ignore"):
        return [np.asarray(evaluate(each, numbers, np)) for each in formulas]


def _network_values(network: FluxNetwork, total: np.ndarray) -> list[np.ndarray]:
    t = symbol("total")
    first = np.asarray(evaluate(log_of_total(t, network.order), {t: total}, np))
    table = np.stack([first, np.full_like(total, _CONTRAST), np.full_like(total, _SHARE)], axis=1)
    scale = np.asarray(evaluate(learned_part(t, network.order), {t: total}, np), dtype=float)
    with jax.enable_x64(True):
        double = cast(network, "float64")
        return [1.0 + scale * np.asarray(each.f(jnp.asarray(table))).ravel() for each in double.weighted]
