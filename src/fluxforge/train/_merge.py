"""Exact merging of ReLU units: a two-layer network with the fewest hidden units that its data can distinguish.

On given inputs a unit w₂ relu(w·x + b) that is never active is 0, one that is always active is linear, and units on
one line t = u·x + c merge into at most two:

    p relu(t) + q relu(−t) + l t + d = (p + l) relu(t) + (q − l) relu(−t) + d.
"""

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from fluxforge.errors import InputError
from fluxforge.gnn._network import MLP, Linear

# Changes of the output below this part of its range, or below FLOOR for inputs and outputs of size one, are regarded as
# noise of the training.
NOISE = 1e-3
FLOOR = 1e-5
# Lines whose unit vectors and offsets differ by less are regarded as the same.
PARALLEL = 1e-2


@dataclass(frozen=True)
class Line:
    """rise relu(t) + fall relu(−t) with t = u·x + c, |u| = 1."""

    u: Float[np.ndarray, " inputs"]
    c: float
    rise: float
    fall: float

    def meets(self, u: Float[np.ndarray, " inputs"], c: float) -> int:
        """1 if u·x + c is the same line, −1 if it is the same reversed, 0 otherwise."""
        for sign in (1, -1):
            if np.abs(self.u - sign * u).max() < PARALLEL and abs(self.c - sign * c) < PARALLEL:
                return sign
        return 0


def merge_units(mlp: MLP, x: Float[np.ndarray, "rows inputs"]) -> MLP:
    """The same function on the rows of `x`, up to noise, with its units merged; the strongest line comes first.

    Both units of a line are kept, even if one is 0, so that a refit may use it. Raises InputError for networks other
    than ReLU networks of two layers with one output.
    """
    if len(mlp.layers) != 2 or mlp.activation != "relu" or mlp.layers[1].weight.shape[0] != 1:
        raise InputError("only ReLU networks of two layers with one output can be merged")
    first, last = mlp.layers
    W, b, out = (np.asarray(leaf, float) for leaf in (first.weight, first.bias, last.weight[0]))
    t = x @ W.T + b
    noise = max(NOISE * float(np.ptp(np.maximum(t, 0.0) @ out)), FLOOR)
    on, off = (np.maximum(sign * t, 0.0).max(axis=0) * np.abs(out) for sign in (1.0, -1.0))
    linear = off <= noise
    kinked = ~linear & (on > noise)
    lines: list[Line] = []
    for w, bias, weight in zip(W[kinked], b[kinked], out[kinked], strict=True):
        lines = _join_unit(lines, w, float(bias), float(weight))
    slope, constant = out[linear] @ W[linear], float(out[linear] @ b[linear] + last.bias[0])
    lines, constant = _add_slope(lines, slope, constant)
    # Units may cancel each other.
    lines = [line for line in lines if max(abs(line.rise), abs(line.fall)) > FLOOR]
    lines.sort(key=lambda line: -max(abs(line.rise), abs(line.fall)) * float(np.ptp(x @ line.u)))
    return _to_mlp(lines, constant, inputs=W.shape[1])


def _join_unit(lines: list[Line], w: Float[np.ndarray, " inputs"], bias: float, weight: float) -> list[Line]:
    """The lines with one more unit, weight · relu(w·x + bias)."""
    length = float(np.linalg.norm(w))
    u, c, size = w / length, bias / length, weight * length
    for k, line in enumerate(lines):
        if sign := line.meets(u, c):
            grown = replace(line, rise=line.rise + size) if sign > 0 else replace(line, fall=line.fall + size)
            return [*lines[:k], grown, *lines[k + 1 :]]
    return [*lines, Line(u, c, size, 0.0)]


def _add_slope(lines: list[Line], slope: Float[np.ndarray, " inputs"], constant: float) -> tuple[list[Line], float]:
    """The lines with the linear part added to a parallel one, or as a new line through the origin; and the constant."""
    length = float(np.linalg.norm(slope))
    if length == 0.0:
        return lines, constant
    u = slope / length
    for k, line in enumerate(lines):
        if sign := replace(line, c=0.0).meets(u, 0.0):
            along = sign * length
            grown = replace(line, rise=line.rise + along, fall=line.fall - along)
            return [*lines[:k], grown, *lines[k + 1 :]], constant - along * line.c
    return [*lines, Line(u, 0.0, length, -length)], constant


def _to_mlp(lines: list[Line], constant: float, *, inputs: int) -> MLP:
    units = 2 * max(len(lines), 1)
    W, b, out = np.zeros((units, inputs)), np.zeros(units), np.zeros((1, units))
    for k, line in enumerate(lines):
        # Both weights of a unit have the root of its slope, which minimises the sum of their sizes.
        reach = np.sqrt(max(abs(line.rise), abs(line.fall)))
        W[2 * k], W[2 * k + 1] = reach * line.u, -reach * line.u
        b[2 * k], b[2 * k + 1] = reach * line.c, -reach * line.c
        out[0, 2 * k], out[0, 2 * k + 1] = line.rise / reach, line.fall / reach
    return MLP((Linear(jnp.asarray(W), jnp.asarray(b)), Linear(jnp.asarray(out), jnp.asarray([constant]))))
