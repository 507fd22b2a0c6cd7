"""A small network of the unknown function in a form of a flux, trained on measured fluxes."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from fluxforge import recipe
from fluxforge.experiment._setup import Dataset, Form, Samples
from fluxforge.run._arrays import read_arrays, write_arrays
from fluxforge.run._checkpoint import Checkpoints
from fluxforge.train._small import Layers, OptimizerState, apply_layers, descend, name_layers, read_layers

Tell = Callable[[int, int, float], None]
"""tell(step, steps, relative error)."""


@dataclass(frozen=True, eq=False)
class FluxNetwork:
    """F = offset + Σ weight · g(columns), g an MLP with silu between its layers, of standardised columns.

    `error` is the root mean square of its error on held-out experiments, over that of the fluxes.
    """

    form: Form
    layers: Layers
    centre: Float[np.ndarray, " columns"]
    spread: Float[np.ndarray, " columns"]
    scale: float
    error: float

    def __call__(self, samples: Samples) -> Float[np.ndarray, " samples"]:
        """The flux in the given experiments."""
        arrays = self.form.arrays(samples)
        return arrays.offset + (arrays.weights * self.function(arrays.columns)).sum(axis=1)

    def function(self, columns: Float[np.ndarray, "*batch columns"]) -> Float[np.ndarray, "*batch"]:
        """The values of g for columns as the form defines them, before they are standardised."""
        x = (_features(columns, self.form.positive) - self.centre) / self.spread
        return self.scale * apply_layers(self.layers, x)[..., 0]

    def save(self, path: Path) -> None:
        """Write weights, scales and error to a safetensors file; raises as `write_arrays` does."""
        arrays = name_layers(self.layers)
        arrays |= {"centre": self.centre, "spread": self.spread, "numbers": np.array([self.scale, self.error])}
        write_arrays(path, arrays)


def load_network(path: Path, form: Form) -> FluxNetwork | None:
    """The network of a file; None if it is missing or damaged, or has another number of columns than `form`."""
    if (saved := read_arrays(path)) is None:
        return None
    arrays = saved.arrays
    try:
        scale, error = (float(each) for each in arrays["numbers"])
        network = FluxNetwork(form, read_layers(arrays), arrays["centre"], arrays["spread"], scale, error)
    except (KeyError, ValueError):
        return None
    return network if len(network.centre) == len(form.names) else None


def _features(columns: np.ndarray, positive: tuple[bool, ...]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where(positive, np.log(np.where(positive, columns, 1.0)), columns)


class _Batch(NamedTuple):
    """Standardised columns, weights and targets in units of the fluxes, and the weights of samples in the loss."""

    x: Float[Array, "samples terms columns"]
    weights: Float[Array, "samples terms"]
    target: Float[Array, " samples"]
    trust: Float[Array, " samples"]


def train_network(
    form: Form,
    data: Dataset,
    spec: recipe.Recipe,
    *,
    key: int,
    tell: Tell = lambda *_: None,
    checkpoints: Checkpoints | None = None,
) -> FluxNetwork:
    """The best of `spec.seeds` networks, trained side by side, by the error on experiments held out of training.

    Samples count less where their own error is larger than a thousandth of the fluxes. With `checkpoints` the state is
    saved after every chunk of steps, and training goes on from the newest one: the result is the same.
    """
    fitted = data.fitted
    arrays = form.arrays(fitted.samples)
    features = _features(arrays.columns, form.positive)
    flat = features.reshape(-1, features.shape[-1])
    centre, spread = flat.mean(axis=0), flat.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    size = fitted.size
    scale = size / float(np.sqrt(np.mean((arrays.weights**2).sum(axis=1))))
    trust = 1.0 / (1.0 + (fitted.error / (1e-3 * size)) ** 2)
    batch = _Batch(
        *(
            jnp.asarray(each, jnp.float32)
            for each in (
                (features - centre) / spread,
                arrays.weights * scale / size,
                (fitted.flux - arrays.offset) / size,
                trust / trust.mean(),
            )
        )
    )
    members = _train(batch, spec, key, tell, checkpoints)
    networks = [FluxNetwork(form, layers, centre, spread, scale, np.inf) for layers in members]
    errors = [data.held_out.distance(network(data.held_out.samples)) for network in networks]
    best = int(np.argmin(errors))
    return FluxNetwork(form, networks[best].layers, centre, spread, scale, errors[best])


def _train(batch: _Batch, spec: recipe.Recipe, key: int, tell: Tell, checkpoints: Checkpoints | None) -> list[Layers]:
    training, network = spec.training, spec.network
    keys = jax.random.split(jax.random.key(key), spec.seeds)
    schedule = optax.cosine_decay_schedule(training.learning_rate, training.steps)
    optimizer = optax.adam(schedule)
    inputs = batch.x.shape[-1]
    make = eqx.filter_vmap(
        lambda each: eqx.nn.MLP(inputs, 1, network.width, network.depth, activation=jax.nn.silu, key=each)
    )
    models = make(keys)
    arrays, static = eqx.partition(models, eqx.is_inexact_array)
    state = jax.vmap(optimizer.init)(arrays)
    first, fingerprint = 0, _fingerprint(batch, spec, key)
    if checkpoints is not None and (kept := checkpoints.latest((arrays, state), fingerprint=fingerprint)) is not None:
        first, (arrays, state) = kept
    while first < training.steps:
        steps = min(training.chunk, training.steps - first)
        arrays, state, loss = _chunk(
            optimizer, static, min(training.batch, len(batch.target)), steps, arrays, state, batch, keys, first
        )
        first += steps
        if checkpoints is not None and first < training.steps:
            checkpoints.save(first, (arrays, state), fingerprint=fingerprint)
        tell(first, training.steps, float(np.sqrt(np.min(np.asarray(loss)))))
    trained = eqx.combine(arrays, static)
    return [
        tuple((np.asarray(layer.weight[k], float), np.asarray(layer.bias[k], float)) for layer in trained.layers)
        for k in range(spec.seeds)
    ]


def _fingerprint(batch: _Batch, spec: recipe.Recipe, key: int) -> str:
    """A digest of everything that determines the result of a training, except the versions of libraries."""
    total = hashlib.sha256(f"{recipe.fingerprint(spec)} {key}".encode())
    for each in batch:
        total.update(np.asarray(each).tobytes())
    return total.hexdigest()


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _chunk(
    optimizer: optax.GradientTransformation,
    static: eqx.nn.MLP,
    size: int,
    steps: int,
    arrays: eqx.nn.MLP,
    state: OptimizerState,
    batch: _Batch,
    keys: Array,
    first: Array,
) -> tuple[eqx.nn.MLP, OptimizerState, Float[Array, " members"]]:
    """Take `steps` steps of every member, beginning with step `first`; with the last losses."""

    def loss(arrays: eqx.nn.MLP, rows: _Batch) -> Array:
        g = jax.vmap(jax.vmap(eqx.combine(arrays, static)))(rows.x)[..., 0]
        off = (rows.weights * g).sum(axis=1) - rows.target
        return jnp.mean(rows.trust * off**2)

    def member(arrays: eqx.nn.MLP, state: OptimizerState, key: Array) -> Any:
        return descend(loss, optimizer, (arrays, state), batch, size=size, key=key, numbers=first + jnp.arange(steps))

    return jax.vmap(member)(arrays, state, keys)
