"""F/A = ψ₁ (T_N − T_P)/δ + ψ₂ ḡ·n + ψ₃ ḡ·d/δ with coefficients ψ that a network gives from the invariants of the face.

The flux is linear in T and no rotation changes it; nothing else is built in: consistency, ψ₂ = 1 and ψ₃ = −ψ₁, has to
be learned from the fluxes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from fluxforge import recipe
from fluxforge._files import atomic_path
from fluxforge.skew._data import FaceTable
from fluxforge.train._small import Layers, OptimizerState, apply_layers, descend, name_layers, read_layers

Tell = Callable[[int, int, float], None]
"""tell(step, steps, relative error)."""


@dataclass(frozen=True, eq=False)
class Coefficients:
    """ψ₁, ψ₂, ψ₃ of a face: an MLP with silu between its layers, of standardised invariants."""

    layers: Layers
    centre: Float[np.ndarray, " inputs"]
    spread: Float[np.ndarray, " inputs"]

    def __call__(self, inputs: Float[np.ndarray, "rows inputs"]) -> Float[np.ndarray, "rows 3"]:
        """The three coefficients at the invariants of faces."""
        return apply_layers(self.layers, (inputs - self.centre) / self.spread)

    def flux(self, table: FaceTable) -> Float[np.ndarray, " rows"]:
        """F/A in the rows of a table."""
        return np.asarray((self(table.inputs) * table.columns).sum(axis=1))

    def error(self, table: FaceTable) -> float:
        """Root mean square of the error over that of the fluxes."""
        return float(np.sqrt(np.mean((self.flux(table) - table.flux) ** 2))) / table.size

    def save(self, path: Path) -> None:
        """Write its numbers to a file."""
        arrays = name_layers(self.layers) | {"centre": self.centre, "spread": self.spread}
        with atomic_path(path) as temporary:
            save_file({name: np.ascontiguousarray(each) for name, each in arrays.items()}, temporary)


def load_coefficients(path: Path) -> Coefficients | None:
    """A network that was saved; None if there is none."""
    try:
        arrays = load_file(path)
        return Coefficients(read_layers(arrays), arrays["centre"], arrays["spread"])
    except (OSError, SafetensorError, KeyError, ValueError):
        return None


def train_coefficients(table: FaceTable, spec: recipe.Recipe, *, tell: Tell = lambda *_: None) -> Coefficients:
    """The network of the recipe's width and depth, trained on the rows by least squares with Adam."""
    training, shape = spec.training, spec.network
    centre, spread = table.inputs.mean(axis=0), table.inputs.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    x, columns, target = (
        jnp.asarray(each, jnp.float32)
        for each in ((table.inputs - centre) / spread, table.columns / table.size, table.flux / table.size)
    )
    key = jax.random.key(spec.seed)
    model = eqx.nn.MLP(x.shape[1], 3, shape.width, shape.depth, activation=jax.nn.silu, key=key)
    arrays, static = eqx.partition(model, eqx.is_inexact_array)
    optimizer = optax.adam(optax.cosine_decay_schedule(training.learning_rate, training.steps))
    state = optimizer.init(arrays)
    batch = min(training.batch, len(table))
    for first in range(0, training.steps, training.chunk):
        steps = min(training.chunk, training.steps - first)
        arrays, state, loss = _chunk(optimizer, static, batch, steps, arrays, state, (x, columns, target), key, first)
        tell(first + steps, training.steps, float(np.sqrt(loss)))
    trained = eqx.combine(arrays, static)
    layers = tuple((np.asarray(layer.weight, float), np.asarray(layer.bias, float)) for layer in trained.layers)
    return Coefficients(layers, centre, spread)


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _chunk(
    optimizer: optax.GradientTransformation,
    static: eqx.nn.MLP,
    size: int,
    steps: int,
    arrays: eqx.nn.MLP,
    state: OptimizerState,
    data: tuple[Array, Array, Array],
    key: Array,
    first: Array,
) -> tuple[eqx.nn.MLP, OptimizerState, Float[Array, ""]]:
    """So many steps, and the mean of the last losses."""

    def loss(arrays: eqx.nn.MLP, rows: tuple[Array, Array, Array]) -> Array:
        x, columns, target = rows
        psi = jax.vmap(eqx.combine(arrays, static))(x)
        return jnp.mean(((psi * columns).sum(axis=1) - target) ** 2)

    return descend(loss, optimizer, (arrays, state), data, size=size, key=key, numbers=first + jnp.arange(steps))
