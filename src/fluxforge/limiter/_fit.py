"""From a trained φ to closed forms: constants that repeat the network, then constants of least loss."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluxforge.limiter._evolve import Loss, evolve
from fluxforge.limiter._families import Family
from fluxforge.limiter._measure import HORIZONS, cfl_superbee, errors, ratios, row_errors
from fluxforge.limiter._profiles import COURANT, Profiles, draw_rows
from fluxforge.limiter._rows import Phi, upper_bound

# The grid on which φ is compared with the network: r/(1 + r) and c.
_POINTS = (64, 10)
# Ratios at which the network is read, and |log r| up to which its line through (1, 1) is measured.
_RATIOS = np.geomspace(0.02, 20.0, 600)
_NEAR_ONE = 0.5
# The spreads of the parts of a refit, of each constant's scale. Each part begins anew: the last has narrowed its own.
_SPREADS = (0.2, 0.1, 0.05)
# How fast the weight of a horizon grows with its ratio, per generation, and the candidates that decide it.
_GROWTH, _BEST = 0.1, 6
Tell = Callable[[int, int], None]


class Fit(NamedTuple):
    """Constants of a family, and the root mean square of φ − φ_network over the upper bound, where q = 1."""

    family: Family
    constants: np.ndarray
    misfit: float


def sample_grid() -> tuple[Array, Array]:
    """R and c, evenly spread over r/(1 + r) and the Courant numbers trained with."""
    s = (np.arange(_POINTS[0]) + 0.5) / _POINTS[0]
    c = np.linspace(*COURANT, _POINTS[1])
    grid = np.meshgrid(s / (1 - s), c)
    return jnp.asarray(grid[0], jnp.float32), jnp.asarray(grid[1], jnp.float32)


class Breakpoints(NamedTuple):
    """What a network says at each Courant number: where φ leaves its line for the bound, and its slopes in r and q."""

    c: np.ndarray
    low: np.ndarray
    high: np.ndarray
    slope: np.ndarray
    downwind: np.ndarray


def read_breakpoints(network: Phi) -> Breakpoints:
    """The slopes of φ about r = q = 1, and the ratios r on either side of 1 where it turns from a line to the bound.

    A turn is where φ over the bound is half way from its value at r = 1 to its largest value on that side, with q = 1.
    """
    c = np.linspace(*COURANT, _POINTS[1])
    r = np.broadcast_to(_RATIOS, (len(c), len(_RATIOS)))
    courant, ratios, ones = (jnp.asarray(each, jnp.float32) for each in (c[:, None], r, np.ones_like(r)))
    phi, beside = (np.asarray(network(*each, courant), float) for each in ((ratios, ones), (ones, ratios)))
    share = phi / np.minimum(2 * r / c[:, None], 2 / (1 - c[:, None]))
    near = (np.abs(np.log(_RATIOS)) < _NEAR_ONE).astype(float)
    slope, downwind = (
        ((each - 1) * (r - 1) * near).sum(axis=1) / ((r - 1) ** 2 * near).sum(axis=1) for each in (phi, beside)
    )
    at_one = int(np.abs(_RATIOS - 1).argmin())
    low, high = np.empty(len(c)), np.empty(len(c))
    for k, row in enumerate(share):
        high[k] = _RATIOS[at_one + _first_half(row[at_one:])]
        low[k] = _RATIOS[at_one - _first_half(row[at_one::-1])]
    return Breakpoints(c, low, high, slope, downwind)


def _first_half(share: np.ndarray) -> int:
    """Where a share first passes the middle between its first and its largest value."""
    return int((share >= 0.5 * (share[0] + share.max())).argmax())


def fit_network(family: Family, network: Phi) -> Fit:
    """The constants that a network's breakpoints give a family, linear in c, and the family's own for the others."""
    points = read_breakpoints(network)
    start = np.zeros(len(family.scales))
    # Straight lines in c: the refit bends them where that lowers the loss.
    start[0:2], start[3:5], start[6:8] = (
        np.polyfit(points.c, each, 1)[::-1] for each in (points.low, points.high, points.slope)
    )
    if family.downwind:
        start[8:10] = np.polyfit(points.c, points.downwind, 1)[::-1]
    if family.first:
        start[-len(family.first) :] = family.first
    r, c = sample_grid()
    ones, bound = jnp.ones_like(r), upper_bound(r, c)
    apart = (family.of(jnp.asarray(start, jnp.float32))(r, ones, c) - network(r, ones, c)) / bound
    return Fit(family, start, float(jnp.sqrt(jnp.square(apart).mean())))


Draw = Callable[[int], tuple[Profiles, Array]]
"""The profiles and Courant numbers of a generation."""


def refit(
    family: Family, start: np.ndarray, draw: Draw, *, generations: int, candidates: int, seed: int, tell: Tell
) -> np.ndarray:
    """The constants of least loss: the worst of the ratios to CFL-superbee's error after 128, 512 and 2,048 steps.

    The profiles of every generation are new, and few, so that the worst of their three ratios is the worst by chance.
    What is minimised is a weighted mean of the ratios, whose weights grow with the ratios of the best candidates: over
    many generations they settle on the horizons that are the worst on average.
    """

    @jax.jit
    def compare(constants: Array, profiles: Profiles, c: Array) -> tuple[Array, Array]:
        wanted = errors(cfl_superbee, profiles, c)
        found = jax.vmap(lambda own: errors(family.of(own), profiles, c) / wanted)(constants)
        return found, jax.vmap(family.penalty)(constants)

    weights = np.full(len(HORIZONS), 1 / len(HORIZONS))

    def loss(constants: np.ndarray, generation: int) -> np.ndarray:
        nonlocal weights
        tell(generation, generations)
        found, penalty = map(np.asarray, compare(jnp.asarray(constants, jnp.float32), *draw(generation)))
        total = np.nan_to_num(found @ weights + penalty, nan=np.inf)
        best = np.argsort(total, kind="stable")[:_BEST]
        # A candidate of which a row has run away says nothing about the horizons.
        weights = weights * np.exp(_GROWTH * np.clip(np.nan_to_num(found[best], nan=2.0), 0.0, 2.0).mean(axis=0))
        weights /= weights.sum()
        return total

    centre = start
    ends = np.linspace(0, generations, len(_SPREADS) + 1).round().astype(int)
    for spread, begin, end in zip(_SPREADS, ends, ends[1:], strict=False):
        if end > begin:
            shift = partial(_shift, loss, int(begin))
            wide = spread * np.array(family.scales)
            found = evolve(shift, centre, wide, generations=int(end - begin), candidates=candidates, seed=seed)
            centre = found.constants
    return centre


def _shift(loss: Loss, begin: int, constants: np.ndarray, generation: int) -> np.ndarray:
    return loss(constants, begin + generation)


def measure_loss(fit: Fit, draw: Draw) -> float:
    """The worst of a fit's ratios to CFL-superbee's error, on one batch of profiles."""
    return float(jax.jit(lambda p, c: ratios(phi_of(fit), p, c).max())(*draw(0)))


def phi_of(fit: Fit) -> Phi:
    """φ of a fit, in single precision."""
    return fit.family.of(jnp.asarray(fit.constants, jnp.float32))


class Ratio(NamedTuple):
    """A mean error over CFL-superbee's, and its standard error over rows drawn at random."""

    value: float
    error: float


def held_out_ratios(phi: Phi, *, seed: int, rows: int) -> dict[int, Ratio]:
    """Errors over CFL-superbee's by the number of steps, on profiles that were never trained with."""
    double = jnp.result_type(float) == jnp.float64
    found, wanted = (_held_out_errors(each, seed, rows, double) for each in (phi, cfl_superbee))
    value = found.mean(axis=1) / wanted.mean(axis=1)
    # Of a ratio of means, to first order in their deviations.
    error = np.std(found - value[:, None] * wanted, axis=1) / np.sqrt(rows) / wanted.mean(axis=1)
    return {steps: Ratio(*map(float, own)) for steps, *own in zip(HORIZONS, value, error, strict=True)}


@lru_cache(maxsize=2)
def _held_out_errors(phi: Phi, seed: int, rows: int, double: bool) -> np.ndarray:
    """The errors of each row (horizons, rows), in double precision or not; CFL-superbee's are asked for repeatedly."""
    return np.asarray(jax.jit(partial(row_errors, phi))(*draw_rows(jax.random.key(seed), rows)), float)
