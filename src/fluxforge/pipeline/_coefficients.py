"""Order in time and stability of formulas of the coefficients of a network in the form of a flux.

Formulas of coefficients have to preserve the network's order in time. With order 2 the search is for g in
c = 1 + total/(1 + total) g: for every g that is bounded as Δt → 0, c changes the step of the integrator by O(Δt³) only.
Candidates that are not bounded there, such as 1/total or log(total), are omitted. With order 1 the search is for c
itself, and candidates that grow like a power of 1/Δt are omitted, since the scheme would not be consistent with the
equation.
"""

from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp

from fluxforge._types import CellField
from fluxforge.distil._front import Candidate, Front
from fluxforge.errors import DiscoveryError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._flux_form import FluxNetwork, learned_part, log_of_total
from fluxforge.gnn._network import cast
from fluxforge.run.carry import Stability
from fluxforge.scheme._tableau import Tableau
from fluxforge.scheme._weighted import face_invariants
from fluxforge.stepping._exponential import amplification, optimal_polynomial

# Values of `total` at which g is evaluated, and its largest change from one to the next, relative to max(1, |g|), for
# which it counts as bounded: log(total) changes by 7, 1/total by a factor of 1000, √total by 1e-4.
_SMALL_TOTALS = (1e-8, 1e-11, 1e-14)
_CHANGE_TOLERANCE = 1e-3
# Largest factor by which c may grow from one of these values to the next: log(total) grows by a third, 1/√total by a
# factor of 31.
_LARGEST_GROWTH = 10.0
# Samples of the other invariants, which lie between 0 and 1; those of a reaction, r Δt, are scaled with `total`.
_OTHER_INVARIANTS = np.array([0.05, 0.17, 0.4])
# On equilateral triangles both cells of a face are equal, and each of the three faces has the same share.
_CONTRAST, _SHARE = 0.0, 1.0 / 6.0
# Steps are tried from short to long, each 0.2 % longer than the last, up to eight times the best interval.
_FIRST_STEP, _STEP_RATIO = 1e-2, 1.002
_POINTS = 400
# Allowed excess of |R| over 1 by round-off: R is a polynomial of degree up to eight at arguments up to a hundred.
_ROUND_OFF = 1e-9

Coefficients = Callable[[np.ndarray], Sequence[np.ndarray]]


def measure_stability(network: FluxNetwork, formulas: Mapping[str, sp.Expr] | None) -> Stability | None:
    """The stability intervals β of the network, its formulas and its integrator, with those of RKL2 and the optimum.

    None for a free network, and for an equation that does more than diffuse, whose eigenvalues are not on the negative
    axis.
    """
    if network.free or set(face_invariants(network.equation)) != {"total", "contrast", "share"}:
        return None
    stages, tableau = len(network.tableau.rows), network.tableau
    best = optimal_polynomial(stages).reach
    formula_interval = None
    if formulas is not None:
        formula_interval = stability_interval(tableau, lambda total: _evaluate(list(formulas.values()), total), best)
    return Stability(
        stages=stages,
        network=stability_interval(tableau, lambda total: _network_values(network, total), best),
        formula=formula_interval,
        integrator=stability_interval(tableau, lambda total: [np.ones_like(total)] * (stages - 1), best),
        rkl2=(stages**2 + stages - 2) / 2,
        optimum=best,
    )


def stability_interval(tableau: Tableau, coefficients: Coefficients, best: float) -> float:
    """The largest β such that |R| ≤ 1 for all modes of a uniform mesh at every time step up to β/2 Fourier steps.

    `coefficients` gives the coefficient of every stage at an array of `total`; `best` is the optimal interval, of which
    the search goes up to eight times.
    """
    longest = 8.0 * best
    reach = np.geomspace(_FIRST_STEP, longest, int(np.log(longest / _FIRST_STEP) / np.log(_STEP_RATIO)))
    # Chebyshev points of [−β, 0], 0 left out: R(0) = 1.
    shape = -0.5 * (1.0 - np.cos(np.pi * np.arange(1, _POINTS + 1) / _POINTS))
    # Fo of every cell is β/2, so that `total` = Fo_P + Fo_N is β.
    values = [np.broadcast_to(each, reach.shape)[:, None] for each in coefficients(reach)]
    largest = np.abs(amplification(tableau, reach[:, None] * shape, values)).max(axis=1)
    beyond = np.flatnonzero(~(largest <= 1.0 + _ROUND_OFF))
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


def learned_values(coefficients: CellField, total: CellField, order: int) -> CellField:
    """The values that the search fits: with order 1 the coefficient itself, with order 2 its g."""
    if order == 1:
        return coefficients
    return np.asarray((coefficients - 1.0) * (1.0 + total) / total)


def impose_order(front: Front, order: int) -> Front:
    """The candidates of a search as formulas of the coefficient c, without those that would lower the order in time.

    Raises DiscoveryError if none is left.
    """
    keeps = is_consistent if order == 1 else is_bounded
    kept = [each for each in front.candidates if keeps(each.expression)]
    if not kept:
        raise DiscoveryError("every candidate formula of a coefficient grows without bound as Δt goes to 0")
    if order == 1:
        return Front(tuple(kept), front.ended_by_clock)
    scale = learned_part(symbol("total"), order)
    candidates = (Candidate(1 + scale * each.expression, each.complexity, each.error) for each in kept)
    return Front(tuple(candidates), front.ended_by_clock)


def is_bounded(g: sp.Expr) -> bool:
    """Whether a formula of the faces' numbers has a finite limit as Δt, and with it `total`, goes to 0."""
    values = _evaluate_near_zero(g)
    if not np.isfinite(values).all():
        return False
    size = np.maximum(1.0, np.abs(values[0]))
    return bool((np.abs(np.diff(values, axis=0)) <= _CHANGE_TOLERANCE * size).all())


def is_consistent(c: sp.Expr) -> bool:
    """Whether c Δt → 0 with Δt, so that a step with this coefficient is Δt f(u) to first order."""
    size = np.maximum(1.0, np.abs(_evaluate_near_zero(c)))
    return bool(np.isfinite(size).all() and (size[1:] <= _LARGEST_GROWTH * size[:-1]).all())


def _evaluate_near_zero(g: sp.Expr) -> np.ndarray:
    """Values of a formula of the faces' numbers at ever shorter Δt: a row per value of `total`, a column per sample."""
    rows = []
    for t in _SMALL_TOTALS:
        numbers = {
            each: t * _OTHER_INVARIANTS
            if each.name == "total" or each.name.startswith("reaction")
            else _OTHER_INVARIANTS
            for each in g.free_symbols
        }
        with np.errstate(all="ignore"):
            rows.append(np.broadcast_to(np.asarray(evaluate(g, numbers, np), dtype=float), _OTHER_INVARIANTS.shape))
    return np.array(rows)
