"""Two triangles that share a face, as arrays: the smallest graph there is."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fluxforge.graph import PaddedGraph, Shown, Slots
from fluxforge.scheme import Ghost, Hop

# Corners: the shared face from 0 to 1, the apex of the first cell 2, of the second 3. Each cell's faces, the shared
# one first, run counter-clockwise around it. NumPy's arrays, whose digits do not depend on JAX's mode at import.
EQUILATERAL = np.array([[0.0, -1.0], [0.0, 1.0], [-(3.0**0.5), 0.0], [3.0**0.5, 0.0]])
_START = np.array([[0, 1, 2], [1, 0, 3]], np.int32)
_END = np.array([[1, 2, 0], [0, 3, 1]], np.int32)
# Slot 0 leads to the other cell, slots 1 and 2 to ghosts 2–5.
_NODE = np.array([[1, 2, 3], [0, 4, 5]], np.int32)


def pair(
    corners: Float[Array, "4 2"], *, present: Bool[Array, "2 2"], value: Float[Array, "2 2"], faces: bool
) -> PaddedGraph:
    """The graph of a pair; `present` and `value` describe the two outer faces of each cell.

    Without `faces` there are no ghosts at all, and one slot. An outer face that is not present is insulated by being
    absent: no edge leads there.
    """
    slots = 3 if faces else 1
    p, q = corners[_START], corners[_END]
    along, centre = q - p, 0.5 * (p + q)
    x = jnp.stack([corners[jnp.array([0, 1, 2])].mean(axis=0), corners[jnp.array([0, 1, 3])].mean(axis=0)])
    A = jnp.hypot(along[..., 0], along[..., 1])
    n = jnp.stack([along[..., 1], -along[..., 0]], axis=-1) / A[..., None]
    inner = jnp.arange(3) == 0
    d = jnp.where(inner[None, :, None], (x[::-1] - x)[:, None, :], centre - x[:, None, :])
    d_n = jnp.einsum("...i,...i->...", d, n)
    V = volumes(corners)
    geometry = {
        "A": A,
        "delta": jnp.hypot(d[..., 0], d[..., 1]),
        "n_x": n[..., 0],
        "n_y": n[..., 1],
        "d_x": d[..., 0],
        "d_y": d[..., 1],
        "d_n": d_n,
        "d_t": jnp.linalg.norm(d - d_n[..., None] * n, axis=-1),
        "chi": jnp.ones_like(A),
        "V_P": jnp.broadcast_to(V[:, None], (2, 3)),
        "V_N": jnp.where(inner[None, :], V[::-1][:, None], jnp.inf),
    }
    mask = jnp.concatenate([jnp.ones((2, 1), bool), present], axis=1)
    cell = jnp.broadcast_to(jnp.arange(2, dtype=jnp.int32)[:, None], (2, 3))
    edge = Slots(
        ends={"P": cell[:, :slots], "N": jnp.asarray(_NODE[:, :slots])},
        geometry={name: entry[:, :slots] for name, entry in geometry.items()},
        mask=mask[:, :slots],
    )
    return PaddedGraph(V, jnp.ones(2, bool), _shown(value, ghosts=4 if faces else 0), {str(Hop.EDGE): edge})


def volumes(corners: Float[Array, "4 2"]) -> Float[Array, " 2"]:
    """V = ½ |e × r| with e the shared face and r from its start to the apex of each cell."""
    e, r = corners[1] - corners[0], corners[2:] - corners[:1]
    return 0.5 * jnp.abs(e[0] * r[:, 1] - e[1] * r[:, 0])


def _shown(value: Float[Array, "2 2"], ghosts: int) -> dict[str, Shown]:
    """Cells show themselves; ghosts show g, their owner, or nothing."""
    cell = jnp.array([0, 1, 0, 0, 1, 1], jnp.int32)[: 2 + ghosts]
    own = jnp.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0], value.dtype)[: 2 + ghosts]
    g = jnp.concatenate([jnp.zeros(2, value.dtype), value.ravel()])[: 2 + ghosts]
    nothing = jnp.zeros_like(g)
    return {
        str(Ghost.DIRICHLET): Shown(cell, own, g),
        str(Ghost.OWNER): Shown(cell, jnp.ones_like(own), nothing),
        str(Ghost.ZERO): Shown(cell, own, nothing),
    }
