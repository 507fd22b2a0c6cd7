"""Minimisation without derivatives: a population of candidates whose covariance is learned, for noisy losses."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Loss = Callable[[np.ndarray, int], np.ndarray]
"""The losses of candidates (candidates, constants) in a generation; generations may differ in their data."""

# The part of the covariance that is replaced in each generation.
_LEARNING_RATE = 0.2
_FLOOR = 1e-9
# The part of the generations, the last ones, whose centres are averaged: single centres depend on the data drawn.
_AVERAGED_SHARE = 0.25


class Minimum(NamedTuple):
    """The mean centre of the last generations, and the median loss of each generation."""

    constants: np.ndarray
    history: np.ndarray


def evolve(
    loss: Loss, start: np.ndarray, spread: np.ndarray, *, generations: int, candidates: int, seed: int
) -> Minimum:
    """Move `start` towards the least loss, with steps of about `spread` at first.

    Each generation draws candidates in pairs on either side of the centre, and moves it to the weighted mean of the
    best quarter; the covariance is learned from the steps of these. A loss that is not finite counts as the largest.
    """
    rng, centre = np.random.default_rng(seed), np.array(start, float)
    best = max(1, candidates // 4)
    weights = np.log(best + 0.5) - np.log(np.arange(1, best + 1))
    weights /= weights.sum()
    scale = np.array(spread, float)
    # In units of the spread, so that the floor means the same for every constant.
    covariance = np.eye(len(centre))
    history, centres = [], []
    for generation in range(generations):
        root = np.linalg.cholesky(covariance + _FLOOR * np.eye(len(centre)))
        half = rng.normal(size=(candidates // 2, len(centre)))
        moves = np.concatenate([half, -half]) @ root.T
        losses = np.nan_to_num(loss(centre + moves * scale, generation), nan=np.inf)
        chosen = moves[np.argsort(losses, kind="stable")[:best]]
        centre = centre + weights @ chosen * scale
        covariance = (1 - _LEARNING_RATE) * covariance + _LEARNING_RATE * (chosen * weights[:, None]).T @ chosen
        history.append(np.median(losses))
        centres.append(centre)
    last = max(1, round(_AVERAGED_SHARE * generations))
    return Minimum(np.mean(centres[-last:], axis=0), np.array(history))
