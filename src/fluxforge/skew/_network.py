"""F/A = ψ₁ (T_N − T_P)/δ + ψ₂ ḡ·n + ψ₃ ḡ·d/δ: a network gives ψ from the invariants of the face, and its consistency.

The flux is linear in T and no rotation changes it; nothing else is built in: consistency, ψ₂ = 1 and ψ₁ + ψ₃ = 0, has
to be learned from the fluxes.

Only linear fields distinguish the sum ψ₁ + ψ₃ from ψ₁: for them (T_N − T_P)/δ = ḡ·d/δ. Curved fields add a truncation
error of the size of the mesh, which biases the fit by a few thousandths on coarse meshes. The two numbers are therefore
fitted on unseen meshes of three sizes, and extrapolated in h².
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from fluxforge import recipe
from fluxforge.distil._constants import nearest_fraction
from fluxforge.run._arrays import read_arrays, write_arrays
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
        """Write the layers and the standardisation to a file; raises as `write_arrays` does."""
        write_arrays(path, name_layers(self.layers) | {"centre": self.centre, "spread": self.spread})


def load_coefficients(path: Path) -> Coefficients | None:
    """The network of a file; None if the file is missing, damaged, or not one of `Coefficients.save`."""
    if (saved := read_arrays(path)) is None:
        return None
    try:
        return Coefficients(read_layers(saved.arrays), saved.arrays["centre"], saved.arrays["spread"])
    except KeyError:
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
    """`steps` optimiser steps from number `first` on; returns weights, state and the mean of the last losses."""

    def loss(arrays: eqx.nn.MLP, rows: tuple[Array, Array, Array]) -> Array:
        x, columns, target = rows
        psi = jax.vmap(eqx.combine(arrays, static))(x)
        return jnp.mean(((psi * columns).sum(axis=1) - target) ** 2)

    return descend(loss, optimizer, (arrays, state), data, size=size, key=key, numbers=first + jnp.arange(steps))


CELLS = (200, 800, 3_200)
"""The cells of the meshes on which the numbers are fitted; from one to the next the mesh width halves."""

# The largest root mean square, over faces, of ψ₂ − 1 and ψ₁ + ψ₃ with which consistency counts as learned.
LARGEST_SPREAD = 0.03


@dataclass(frozen=True)
class FittedNumber:
    """A number fitted on meshes of several sizes, its limit with an uncertainty, and the fraction it stands for."""

    by_size: tuple[float, ...]
    limit: float
    uncertainty: float
    fraction: Fraction | None

    @property
    def text(self) -> str:
        """The limit with its uncertainty, and the fraction."""
        taken = "" if self.fraction is None else f" (taken as {self.fraction})"
        return f"{self.limit:.5f} ± {self.uncertainty:.5f}{taken}"


@dataclass(frozen=True)
class Consistency:
    """ψ₂ and ψ₁ + ψ₃ in the limit of fine meshes, and how far the network's own values are from 1 and 0.

    `spread` are root mean squares over the faces of the finest meshes.
    """

    normal: FittedNumber
    total: FittedNumber
    normal_spread: float
    total_spread: float

    @property
    def holds(self) -> bool:
        """Whether the numbers are 1 and 0, and those of single faces are near them."""
        exact = self.normal.fraction == 1 and self.total.fraction == 0
        return exact and max(self.normal_spread, self.total_spread) <= LARGEST_SPREAD

    @property
    def sentence(self) -> str:
        """Both numbers with their uncertainties, in words."""
        return f"ψ₂ = {self.normal.text}, ψ₁ + ψ₃ = {self.total.text} in the limit of fine meshes"


def fit_limits(network: Coefficients, tables: Sequence[FaceTable]) -> Consistency:
    """Fit the numbers on tables of three sizes of mesh, coarse to fine, the network's ψ₁ being given."""
    fitted = np.array([_fit(network, table) for table in tables])
    numbers = []
    for values in fitted.T:
        change = float(values[-1] - values[-2])
        # From the last but one size to the last h² falls to a quarter; the change between them is taken as the
        # uncertainty.
        limit = float(values[-1]) + change / 3.0
        uncertainty = max(abs(change), 1e-6)
        numbers.append(
            FittedNumber(tuple(map(float, values)), limit, uncertainty, nearest_fraction(limit, uncertainty))
        )
    psi = network(tables[-1].inputs)
    spread = [float(np.sqrt(np.mean(off**2))) for off in (psi[:, 1] - 1.0, psi[:, 0] + psi[:, 2])]
    return Consistency(numbers[0], numbers[1], *spread)


def _fit(network: Coefficients, table: FaceTable) -> np.ndarray:
    """F/A − ψ₁ ((T_N − T_P)/δ − ḡ·d/δ) = a ḡ·n + b ḡ·d/δ by least squares: a and b."""
    rise, normal, along = table.columns.T
    left = table.flux - network(table.inputs)[:, 0] * (rise - along)
    return np.asarray(np.linalg.lstsq(np.stack([normal, along], axis=1), left, rcond=None)[0])
