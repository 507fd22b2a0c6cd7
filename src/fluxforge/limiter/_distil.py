"""From a trained network to closed forms: constants fitted to the network, then constants of least loss.

All families are fitted to the network; the best that jumps and the best continuous one are refitted.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluxforge import recipe
from fluxforge.limiter._evolve import Loss, evolve
from fluxforge.limiter._families import FAMILIES, Family
from fluxforge.limiter._rows import (
    COURANT,
    FAMILY_CHOICE,
    HORIZONS,
    REFIT,
    Phi,
    Profiles,
    Ratio,
    cfl_superbee,
    compare_means,
    draw_rows,
    errors,
    ratios,
    row_errors,
    upper_bound,
)
from fluxforge.limiter._train import Progress, Weights, network_phi, plan_training
from fluxforge.run._folder import RunFolder

# The digits after the point to which constants are rounded.
DIGITS = 3
# The grid on which φ is compared with the network: r/(1 + r) and c.
_POINTS = (64, 10)
# Ratios at which the network is evaluated, and |log r| up to which its line through (1, 1) is fitted.
_RATIOS = np.geomspace(0.02, 20.0, 600)
_LOG_WIDTH = 0.5
# The initial spreads of the parts of a refit, relative to each constant's scale. Every part begins with its own, since
# the part before has narrowed its spread.
_SPREADS = (0.2, 0.1, 0.05)
# How fast the weight of a horizon grows with its ratio, per generation, and the candidates that decide it.
_GROWTH, _BEST = 0.1, 6
Tell = Callable[[int, int], None]


class Fit(NamedTuple):
    """A family's constants, and the root mean square of φ − φ_network, relative to the upper bound, at q = 1."""

    family: Family
    constants: np.ndarray
    misfit: float


def sample_grid() -> tuple[Array, Array]:
    """R and c on a grid, evenly spread over r/(1 + r) and over the Courant numbers of the training."""
    s = (np.arange(_POINTS[0]) + 0.5) / _POINTS[0]
    c = np.linspace(*COURANT, _POINTS[1])
    grid = np.meshgrid(s / (1 - s), c)
    return jnp.asarray(grid[0], jnp.float32), jnp.asarray(grid[1], jnp.float32)


class Breakpoints(NamedTuple):
    """A network's φ at each Courant number: where it leaves its line for the bound, and its slopes in r and q."""

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
    near = (np.abs(np.log(_RATIOS)) < _LOG_WIDTH).astype(float)
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
    """Fit a family to a network: constants linear in c by its breakpoints, all others by the family's `first`."""
    points = read_breakpoints(network)
    start = np.zeros(len(family.scales))
    # Linear in c: the refit adds curvature where that lowers the loss.
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

    The profiles of every generation are new and few, so that the worst of their three ratios is the worst by chance.
    Minimised is therefore a weighted mean of the ratios, whose weights grow with the ratios of the best candidates:
    over many generations they settle on the horizons that are the worst on average.
    """

    @jax.jit
    def compare(constants: Array, profiles: Profiles, c: Array) -> tuple[Array, Array]:
        reference = errors(cfl_superbee, profiles, c)
        relative = jax.vmap(lambda candidate: errors(family.of(candidate), profiles, c) / reference)(constants)
        return relative, jax.vmap(family.penalty)(constants)

    weights = np.full(len(HORIZONS), 1 / len(HORIZONS))

    def loss(constants: np.ndarray, generation: int) -> np.ndarray:
        nonlocal weights
        tell(generation, generations)
        relative, penalty = map(np.asarray, compare(jnp.asarray(constants, jnp.float32), *draw(generation)))
        total = np.nan_to_num(relative @ weights + penalty, nan=np.inf)
        best = np.argsort(total, kind="stable")[:_BEST]
        # A candidate with a row that has blown up (nan) says nothing about the horizons, and counts with a ratio of 2.
        weights = weights * np.exp(_GROWTH * np.clip(np.nan_to_num(relative[best], nan=2.0), 0.0, 2.0).mean(axis=0))
        weights /= weights.sum()
        return total

    centre = start
    ends = np.linspace(0, generations, len(_SPREADS) + 1).round().astype(int)
    for spread, begin, end in zip(_SPREADS, ends, ends[1:], strict=False):
        if end > begin:
            shift = partial(_shift, loss, int(begin))
            wide = spread * np.array(family.scales)
            minimum = evolve(shift, centre, wide, generations=int(end - begin), candidates=candidates, seed=seed)
            centre = minimum.constants
    return centre


def _shift(loss: Loss, begin: int, constants: np.ndarray, generation: int) -> np.ndarray:
    return loss(constants, begin + generation)


def measure_loss(fit: Fit, draw: Draw) -> float:
    """The largest of a fit's ratios to CFL-superbee's error, on one batch of profiles."""
    return float(jax.jit(lambda p, c: ratios(phi_of(fit), p, c).max())(*draw(0)))


def phi_of(fit: Fit) -> Phi:
    """φ of a fit, in single precision."""
    return fit.family.of(jnp.asarray(fit.constants, jnp.float32))


class ClosedForm(NamedTuple):
    """A family with constants: those fitted to the network, and rounded ones of least loss where it was refitted."""

    fit: Fit
    loss: float
    refitted: tuple[float, ...] | None

    @property
    def family(self) -> Family:
        """The family."""
        return self.fit.family


def draw_refits(spec: recipe.Recipe, offset: int) -> Draw:
    """A function that draws the profiles of a refit's generations, a single profile if the recipe trains on one."""
    assert isinstance(spec.data, recipe.Rows)
    plan, rows = plan_training(spec), spec.data.refit

    def draw(generation: int) -> tuple[Profiles, Array]:
        profiles, c = draw_rows(jax.random.key(spec.seed + offset + generation), rows)
        if not plan.single:
            return profiles, c
        one = plan.draw(jnp.asarray(0))[0]
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], (rows, *leaf.shape[1:])), one), c

    return draw


def measure_on_refits(phi: Phi, spec: recipe.Recipe, *, rows: int) -> dict[int, Ratio]:
    """Errors relative to CFL-superbee's by the number of steps, on at least `rows` rows drawn as for the refit."""
    assert isinstance(spec.data, recipe.Rows)
    draw, batches = draw_refits(spec, REFIT), -(-rows // spec.data.refit)
    profiles, c = jax.tree.map(lambda *parts: jnp.concatenate(parts), *map(draw, range(batches)))
    measured, reference = (
        np.asarray(jax.jit(partial(row_errors, each))(profiles, c), float) for each in (phi, cfl_superbee)
    )
    return {steps: compare_means(*pair) for steps, *pair in zip(HORIZONS, measured, reference, strict=True)}


def distil_limiter(weights: Weights, spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> tuple[ClosedForm, ...]:
    """Fit the families of the recipe's stencil to the network; refit the best that jumps and the best continuous one.

    Finished fits are stored in the folder, and read from it when the run is resumed.
    """
    downwind = plan_training(spec).downwind
    families = [family for family in FAMILIES if family.downwind is downwind]
    fitted = []
    for k, family in enumerate(families):
        tell(f"comparing with the network: {family.name}", k, len(families))
        fitted.append(_fit_family(family, weights, spec, folder))
    chosen = {min(group, key=lambda pair: pair[1])[0].family.name for group in _group_by_kind(fitted) if group}
    return tuple(
        ClosedForm(fit, loss, _refit(fit, spec, folder, tell) if fit.family.name in chosen else None)
        for fit, loss in fitted
    )


def _group_by_kind(fitted: list[tuple[Fit, float]]) -> list[list[tuple[Fit, float]]]:
    return [[pair for pair in fitted if pair[0].family.continuous is kind] for kind in (False, True)]


def _fit_family(family: Family, weights: Weights, spec: recipe.Recipe, folder: RunFolder) -> tuple[Fit, float]:
    stage = f"fit-{family.name}"
    if (done := folder.read_stage(stage)) is not None:
        return _read_fit(family, done)
    fit = fit_network(family, network_phi(weights))
    loss = measure_loss(fit, draw_refits(spec, FAMILY_CHOICE))
    folder.finish(stage, {"constants": fit.constants.tolist(), "misfit": fit.misfit, "loss": loss})
    return fit, loss


def _read_fit(family: Family, done: Mapping[str, Any]) -> tuple[Fit, float]:
    return Fit(family, np.array(done["constants"], float), float(done["misfit"])), float(done["loss"])


def _refit(fit: Fit, spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> tuple[float, ...]:
    stage = f"refit-{fit.family.name}"
    if (done := folder.read_stage(stage)) is not None:
        return tuple(done["constants"])
    assert spec.search is not None
    constants = refit(
        fit.family,
        fit.constants,
        draw_refits(spec, REFIT),
        generations=max(1, spec.search.evaluations // spec.search.candidates),
        candidates=spec.search.candidates,
        seed=spec.seed,
        tell=lambda k, of: tell(f"refitting: {fit.family.name}", k, of),
    )
    rounded = tuple(round(float(each), DIGITS) for each in constants)
    folder.finish(stage, {"constants": list(rounded)})
    return rounded
