"""From a trained network to the closed forms of a run: all families fitted to it, the best of each kind refitted."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from fluxforge import recipe
from fluxforge.limiter._families import FAMILIES, Family
from fluxforge.limiter._fit import Draw, Fit, fit_network, measure_loss, refit
from fluxforge.limiter._network import Weights, network_phi
from fluxforge.limiter._profiles import Profiles, draw_rows
from fluxforge.limiter._run import Progress, plan_training
from fluxforge.run._folder import RunFolder

# The digits after the point to which constants are rounded.
DIGITS = 3
_CHOOSING, _REFITTING = 2**28, 2**27


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
    """Profiles of the generations of a refit; a `single` one where the recipe trains on one."""
    assert isinstance(spec.data, recipe.Rows)
    plan, rows = plan_training(spec), spec.data.refit

    def draw(generation: int) -> tuple[Profiles, Array]:
        profiles, c = draw_rows(jax.random.key(spec.seed + offset + generation), rows)
        if not plan.single:
            return profiles, c
        one = plan.draw(jax.numpy.asarray(0))[0]
        return jax.tree.map(lambda leaf: jax.numpy.broadcast_to(leaf[:1], (rows, *leaf.shape[1:])), one), c

    return draw


def distil_limiter(weights: Weights, spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> tuple[ClosedForm, ...]:
    """Fit the families of the recipe's stencil to the network; refit the best that jumps and the best continuous one.

    Finished fits are stored in the folder, and read from it when the run is resumed.
    """
    downwind = plan_training(spec).downwind
    families = [family for family in FAMILIES if family.downwind is downwind]
    fitted = []
    for k, family in enumerate(families):
        tell(f"comparing with the network: {family.name}", k, len(families))
        fitted.append(_fit(family, weights, spec, folder))
    chosen = {min(own, key=lambda pair: pair[1])[0].family.name for own in _by_kind(fitted) if own}
    return tuple(
        ClosedForm(fit, loss, _refit(fit, spec, folder, tell) if fit.family.name in chosen else None)
        for fit, loss in fitted
    )


def _by_kind(fitted: list[tuple[Fit, float]]) -> list[list[tuple[Fit, float]]]:
    return [[pair for pair in fitted if pair[0].family.continuous is kind] for kind in (False, True)]


def _fit(family: Family, weights: Weights, spec: recipe.Recipe, folder: RunFolder) -> tuple[Fit, float]:
    stage = f"fit-{family.name}"
    if (done := folder.read_stage(stage)) is not None:
        return _read_fit(family, done)
    fit = fit_network(family, network_phi(weights))
    loss = measure_loss(fit, draw_refits(spec, _CHOOSING))
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
        draw_refits(spec, _REFITTING),
        generations=max(1, spec.search.evaluations // spec.search.candidates),
        candidates=spec.search.candidates,
        seed=spec.seed,
        tell=lambda k, of: tell(f"refitting: {fit.family.name}", k, of),
    )
    rounded = tuple(round(float(each), DIGITS) for each in constants)
    folder.finish(stage, {"constants": list(rounded)})
    return rounded
