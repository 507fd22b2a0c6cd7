"""Fewer and fewer parameters, refitted in float64 each time, for as long as nothing is lost."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fluxforge.train._least_squares import levenberg_marquardt

Vector: TypeAlias = Float[Array, " parameters"]
Mask: TypeAlias = Bool[np.ndarray, " parameters"]
Defects: TypeAlias = Callable[[Vector], Float[Array, " rows"]]

# The largest defect that still counts as none.
EXACT = 1e-9
REFIT_STEPS = 30
# Starts that are refitted side by side, all but one of them shaken by so much.
STARTS, SHAKEN = 8, 0.1
ROUNDS = 5


class Pruned(NamedTuple):
    """What is left, and the largest defect on the training data."""

    values: Float[np.ndarray, " parameters"]
    mask: Mask
    defect: float


class Pruner:
    """Refits of one family of networks on one set of data, compiled once for all of them."""

    def __init__(self, defects: Defects) -> None:
        def fit(start: Vector, mask: Bool[Array, " parameters"]) -> tuple[Vector, Float[Array, ""]]:
            def left(values: Vector) -> Float[Array, " rows"]:
                return defects(jnp.where(mask, values, 0.0))

            found = levenberg_marquardt(left, jnp.where(mask, start, 0.0), steps=REFIT_STEPS)
            return jnp.where(mask, found, 0.0), jnp.abs(left(found)).max()

        self._fits = eqx.filter_jit(jax.vmap(fit))

    def start(self, values: Float[np.ndarray, " parameters"], mask: Mask, *, seed: int) -> Pruned:
        """The best of several refits, the first from `values` itself, the others from nearby; again from the best."""
        rng = np.random.default_rng(seed)
        held = Pruned(np.asarray(values), mask, np.inf)
        for _ in range(ROUNDS):
            noise = SHAKEN * rng.standard_normal((STARTS, len(values)))
            noise[0] = 0.0
            found = self._best(held.values[None, :] + noise, np.tile(mask, (STARTS, 1)))
            held = found if found.defect < held.defect else held
            if held.defect <= EXACT:
                break
        return held

    def without(self, held: Pruned, groups: list[Mask], *, exact: float = EXACT) -> Pruned:
        """Of the groups take out the one that is missed least, refit, and go on while the fit stays exact."""
        while tried := [held.mask & ~group for group in groups if (held.mask & group).any()]:
            found = self._best(np.tile(held.values, (len(tried), 1)), np.stack(tried))
            if not found.defect <= exact:
                break
            held = found
        return held

    def _best(
        self, starts: Float[np.ndarray, "tries parameters"], masks: Bool[np.ndarray, "tries parameters"]
    ) -> Pruned:
        """The least defect; among exact fits, the one with the fewest parameters."""
        values, defects = self._fitted(starts, masks)
        worst = np.nan_to_num(defects, nan=np.inf)
        exact = worst <= EXACT
        k = (
            int(np.argmin(np.where(exact, masks.sum(axis=1), len(masks[0]) + 1)))
            if exact.any()
            else int(np.argmin(worst))
        )
        return Pruned(values[k], masks[k], float(worst[k]))

    def _fitted(
        self, starts: Float[np.ndarray, "tries parameters"], masks: Bool[np.ndarray, "tries parameters"]
    ) -> tuple[Float[np.ndarray, "tries parameters"], Float[np.ndarray, " tries"]]:
        """So many fits at a time, the last ones filled up with the first, so that one compilation serves them all."""
        tries = len(starts)
        rounds = np.resize(np.arange(tries), (-(-tries // STARTS), STARTS))
        found = [self._fits(jnp.asarray(starts[rows]), jnp.asarray(masks[rows])) for rows in rounds]
        values, defects = (np.concatenate([np.asarray(part) for part in parts]) for parts in zip(*found, strict=True))
        return values[:tries], defects[:tries]
