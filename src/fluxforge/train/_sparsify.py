"""Reduction of a trained ReLU network: merge units, drop biases, remove parameters as long as the fit stays exact."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from fluxforge.data._problem import Problem
from fluxforge.errors import InputError
from fluxforge.gnn._network import MLP, Linear, Network
from fluxforge.gnn._standard import inputs
from fluxforge.loss._loss import step_of
from fluxforge.train._merge import merge_units
from fluxforge.train._optimise import levenberg_marquardt

Vector: TypeAlias = Float[Array, " parameters"]
Mask: TypeAlias = Bool[np.ndarray, " parameters"]
Tries: TypeAlias = Float[np.ndarray, "tries parameters"]
Masks: TypeAlias = Bool[np.ndarray, "tries parameters"]
Defects: TypeAlias = Callable[[Vector], Float[Array, " rows"]]

# A fit is exact if its largest defect is smaller than this.
EXACT = 1e-9
REFIT_STEPS = 30
# The number of starts that are refitted in one batch, and the relative noise on all but the first.
STARTS, SHAKEN = 8, 0.1
ROUNDS = 5


class Pruned(NamedTuple):
    """The remaining parameters, and the largest defect on the training data."""

    values: Float[np.ndarray, " parameters"]
    mask: Mask
    defect: float


class Pruner:
    """Refits of one family of networks on one set of data, compiled once for all of them."""

    def __init__(self, defects: Defects) -> None:
        def fit(start: Vector, mask: Bool[Array, " parameters"]) -> tuple[Vector, Float[Array, ""]]:
            def kept_defects(values: Vector) -> Float[Array, " rows"]:
                return defects(jnp.where(mask, values, 0.0))

            solution = levenberg_marquardt(kept_defects, jnp.where(mask, start, 0.0), steps=REFIT_STEPS)
            return jnp.where(mask, solution, 0.0), jnp.abs(kept_defects(solution)).max()

        self._fits = eqx.filter_jit(jax.vmap(fit))

    def start(self, values: Float[np.ndarray, " parameters"], mask: Mask, *, seed: int) -> Pruned:
        """The best of several refits: from `values`, and from perturbed values; then again from the best."""
        rng = np.random.default_rng(seed)
        held = Pruned(np.asarray(values), mask, np.inf)
        for _ in range(ROUNDS):
            noise = SHAKEN * rng.standard_normal((STARTS, len(values)))
            noise[0] = 0.0
            refit = self._choose_refit(held.values[None, :] + noise, np.tile(mask, (STARTS, 1)))
            held = refit if refit.defect < held.defect else held
            if held.defect <= EXACT:
                break
        return held

    def prune_groups(self, held: Pruned, groups: list[Mask]) -> Pruned:
        """Repeatedly remove the group whose removal leaves the best refit, as long as the fit stays exact."""
        while tried := [held.mask & ~group for group in groups if (held.mask & group).any()]:
            refit = self._choose_refit(np.tile(held.values, (len(tried), 1)), np.stack(tried))
            if not refit.defect <= EXACT:
                break
            held = refit
        return held

    def _choose_refit(self, starts: Tries, masks: Masks) -> Pruned:
        """The refit with the least defect or, if some are exact, the exact one with the fewest parameters."""
        values, defects = self._fit_batches(starts, masks)
        worst = np.nan_to_num(defects, nan=np.inf)
        exact = worst <= EXACT
        k = int(np.argmin(np.where(exact, masks.sum(axis=1), len(masks[0]) + 1) if exact.any() else worst))
        return Pruned(values[k], masks[k], float(worst[k]))

    def _fit_batches(self, starts: Tries, masks: Masks) -> tuple[Tries, Float[np.ndarray, " tries"]]:
        """Fit in batches of `STARTS`, the last one filled up with earlier starts, to compile only once."""
        tries = len(starts)
        rounds = np.resize(np.arange(tries), (-(-tries // STARTS), STARTS))
        fits = [self._fits(jnp.asarray(starts[rows]), jnp.asarray(masks[rows])) for rows in rounds]
        values, defects = (np.concatenate([np.asarray(part) for part in parts]) for parts in zip(*fits, strict=True))
        return values[:tries], defects[:tries]


# Hidden units of every MLP in the canonical form: one line, both signs.
UNITS = 2


@dataclass(frozen=True)
class Reduced:
    """A canonical network, or the closest to one that the search reached.

    `units` are the hidden units of each MLP after exact merging alone, `merged_defect` is the largest change of an
    output by merging on the training data. `exact` says whether the canonical form fits the training data; `nonzeros`
    counts its parameters.
    """

    network: Network
    exact: bool
    nonzeros: int
    training_defect: float
    units: tuple[int, ...]
    merged_defect: float


def sparsify(networks: Sequence[Network], problems: Problem, *, seed: int = 0) -> list[Reduced]:
    """Reduce ReLU networks of two-layer MLPs (m = 2) to as few parameters as the problems allow, in float64."""
    if not networks:
        raise InputError("there are no networks to reduce")
    pruner: Pruner | None = None
    reductions = []
    for network in networks:
        tables = [np.asarray(x, float) for x in inputs(network, problems)]
        merges = [merge_units(f, x) for f, x in zip(network.mlps, tables, strict=True)]
        whole = network.with_mlps(merges)
        start = network.with_mlps([_keep_strongest_line(f) for f in merges])
        flat, unravel = ravel_pytree(eqx.filter(start, eqx.is_array))
        static = eqx.filter(start, eqx.is_array, inverse=True)
        pruner = pruner or Pruner(lambda v, u=unravel, s=static: _defects(eqx.combine(u(v), s), problems))  # type: ignore[misc]
        held = _reduce_network(pruner, np.asarray(flat), start, seed)
        reductions.append(
            Reduced(
                network=eqx.combine(unravel(jnp.asarray(held.values)), static),
                exact=held.defect <= EXACT,
                nonzeros=int(held.mask.sum()),
                training_defect=held.defect,
                units=tuple(len(f.layers[0].bias) for f in merges),
                merged_defect=float(jnp.abs(_defects(whole, problems) - _defects(network, problems)).max()),
            )
        )
    return reductions


@eqx.filter_jit
def _defects(network: Network, problems: Problem) -> Float[Array, " rows"]:
    return jnp.asarray(jax.vmap(step_of(network))(problems) - problems.answer).ravel()


def _keep_strongest_line(mlp: MLP) -> MLP:
    """The strongest line of a merged MLP, without biases."""
    first, last = mlp.layers
    below = Linear(first.weight[:UNITS], jnp.zeros(UNITS))
    return MLP((below, Linear(last.weight[:, :UNITS], jnp.zeros_like(last.bias))))


def _reduce_network(pruner: Pruner, flat: np.ndarray, start: Network, seed: int) -> Pruned:
    """Fit all weights without biases; then remove whole messages, then single inputs, then single weights."""
    weights = _mark_parameters(start, lambda path: "bias" not in path)
    held = pruner.start(flat, weights, seed=seed)
    if held.defect > EXACT:
        return held
    columns = _mark_inputs(start)
    for groups in (_mark_messages(start, columns), columns, [*np.eye(len(flat), dtype=bool)]):
        held = pruner.prune_groups(held, groups)
    return held


def _mark_parameters(network: Network, chosen: Callable[[str], bool]) -> Mask:
    """A mask of the parameters whose path satisfies `chosen`."""
    arrays = eqx.filter(network, eqx.is_array)
    marked = jax.tree_util.tree_map_with_path(
        lambda path, leaf: jnp.full(leaf.shape, chosen(jax.tree_util.keystr(path))),
        arrays,
    )
    return np.asarray(ravel_pytree(marked)[0], bool)


def _starts_with(prefix: str, path: str) -> bool:
    return path.startswith(prefix)


def _first_weight(k: int, network: Network) -> Any:
    return network.mlps[k].layers[0].weight


def _mark_inputs(network: Network) -> list[Mask]:
    """For every MLP and every input of it: the mask of the weights that read this input."""
    arrays = eqx.filter(network, eqx.is_array)
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, bool), arrays)
    masks = []
    for k, f in enumerate(network.mlps):
        for column in range(f.layers[0].weight.shape[1]):
            read = nothing.mlps[k].layers[0].weight.at[:, column].set(True)
            masks.append(eqx.tree_at(partial(_first_weight, k), nothing, read))
    return [np.asarray(ravel_pytree(each)[0], bool) for each in masks]


def _mark_messages(network: Network, columns: list[Mask]) -> list[Mask]:
    """For every layer: the mask of f_agg and of the weights of f_up that multiply its sum, its last input."""
    groups, at = [], 0
    for number, layer in enumerate(network.layers):
        at += 1 + len(layer.update.features)
        message = _mark_parameters(network, partial(_starts_with, f".layers[{number}].messages"))
        groups.append(message | columns[at - 1])
    return groups
