"""The dual graph as a record: a node per cell, an edge per face, and a ghost node per boundary face.

A second record holds the values of an equation's parameters on its cells and faces.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from fluxforge._arguments import check_kind
from fluxforge._types import CellField, CellVectors, FaceField, FaceIndex, FaceVectors, SlotField, SlotIndex, SlotMask
from fluxforge.errors import InputError
from fluxforge.expression._symbols import COORDINATES

Key = TypeVar("Key")


class OnDemand(Mapping[Key, np.ndarray]):
    """Arrays by name, each computed on first access and stored."""

    def __init__(self, makers: Mapping[Key, Callable[[], np.ndarray]]) -> None:
        self._makers = makers
        self._made: dict[Key, np.ndarray] = {}

    def __getitem__(self, name: Key) -> np.ndarray:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


@dataclass(frozen=True, eq=False, repr=False)
class DualGraph:
    """Cells as nodes, faces as edges, boundary faces as edges to ghosts.

    Faces between two cells come first (`interior` of them), then the boundary faces; boundary face `interior + b` ends
    in ghost node `cells + b`. Along a face, `n` and `d` point from its owner to the other side, |d| = `delta`.

    - A Dirichlet ghost lies at the face centre and has the value g.
    - A Neumann ghost is the owner's mirror image along the face normal, d = δ n, and has the value T_P + q δ.
    - A Robin ghost lies where the normal from the owner meets the face; `transfer` is its h, nan at other ghosts.
    - An `inflow` ghost lies at the face centre and has the value g where the flow enters, T_P where it leaves.
    - Robin and inflow ghosts have `follow`·T_P + (1 − `follow`)·`value`. `follow` depends on the equation and is None
      until `close_walls` has set it; 0 at Dirichlet ghosts.

    Periodic faces are the last `wrapped` faces between two cells: d leads from P to the image of N.

    Each cell refers to its faces through `slots`, a fixed number per mesh (3 for triangles, 4 with quadrilaterals):
    `slot_face`, `slot_node` and `slot_sign` (+1 where the cell owns the face); `slot_mask` is false in the unused
    fourth slot of a triangle, which points at the cell itself. `region` is the number of each cell's region in
    `regions`, −1 for a cell in none, and None for a mesh without regions.

    `fluxforge.graph` registers this class as a JAX pytree, so that this module does not import JAX.
    """

    V: CellField
    x: CellVectors
    owner: FaceIndex
    neighbour: FaceIndex
    A: FaceField
    n: FaceVectors
    d: FaceVectors
    delta: FaceField
    centre: FaceVectors
    slot_face: SlotIndex
    slot_node: SlotIndex
    slot_sign: SlotField
    slot_mask: SlotMask
    tag: Int[np.ndarray, " boundary"]
    neumann: Bool[np.ndarray, " boundary"]
    value: Float[np.ndarray, " boundary"]
    tags: tuple[str, ...]
    origin: str
    transfer: Float[np.ndarray, " boundary"] | None = None
    inflow: Bool[np.ndarray, " boundary"] | None = None
    follow: Float[np.ndarray, " boundary"] | None = None
    wrapped: int = 0
    region: Int[np.ndarray, " cells"] | None = None
    regions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        counted = f"{self.cells:,} cells, {self.interior:,} faces between them, {self.ghosts:,} boundary faces"
        return " ".join(f"DualGraph({self.origin:.80}: {counted})".split())

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.x.shape[1]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.V)

    @property
    def ghosts(self) -> int:
        """Number of boundary faces, each with a ghost of its own."""
        return len(self.tag)

    @property
    def interior(self) -> int:
        """Number of faces between two cells."""
        return len(self.owner) - self.ghosts

    @property
    def moving(self) -> Bool[np.ndarray, " faces"]:
        """χ: false on Neumann faces, whose ghost follows its owner and does not count in Σw."""
        return np.concatenate([np.ones(self.interior, bool), ~self.neumann])

    @property
    def following(self) -> Float[np.ndarray, " boundary"]:
        """∂(ghost's value)/∂T_P: 1 at a Neumann ghost, 0 at a Dirichlet ghost.

        Raises InputError where that depends on the equation, and no equation has been given yet.
        """
        if self.follow is not None:
            return self.follow
        if self.transfer is not None or self.inflow is not None:
            raise InputError(
                "Robin and inflow walls depend on the equation: use close_walls(graph, equation, parameters)"
            )
        return self.neumann.astype(float)

    def _offsets(self, i: int) -> SlotField:
        """Coordinate i of p, from each cell's centroid to the centres of its faces (of a periodic face, the image)."""
        face = self.slot_face
        offset = self.centre[face, i] - self.x[:, None, i]
        if not self.wrapped:
            return offset
        # For the far cell of a periodic face, p leads to the image of the centre.
        from_owner = (self.centre[:, i] - self.x[self.owner, i])[face]
        return np.where(self.slot_sign > 0, from_owner, from_owner - self.d[face, i])

    def _component(self, vectors: FaceVectors, i: int) -> SlotField:
        """Component i of a vector of every slot's face, pointing away from the receiving cell."""
        return vectors[self.slot_face, i] * self.slot_sign

    def legs(self) -> Mapping[str, SlotField]:
        """The geometry of every slot's face as the receiving cell sees it: n and d point away from it.

        `d_n` = d·n and `d_t` = |d − (d·n) n| are the same from both sides, since n and d turn together. At a Neumann
        wall d = δ n, so that d_n = δ and d_t = 0; at a Dirichlet wall d leads to the centre of the face. p leads from
        the centroid of the receiving cell to the centre of the face, which for unused slots means nothing.
        """
        face, axes = self.slot_face, COORDINATES[: self.dimension]
        vectors = {"n": self.n, "d": self.d}
        parts = {
            f"{name}_{axis}": partial(self._component, v, i)
            for name, v in vectors.items()
            for i, axis in enumerate(axes)
        }
        return OnDemand(
            {
                "A": lambda: self.A[face],
                "delta": lambda: self.delta[face],
                **parts,
                "chi": lambda: np.concatenate([np.ones(self.interior), 1.0 - self.following])[face],
                "d_n": lambda: normal_part(self.d, self.n)[face],
                "d_t": lambda: tangential_length(self.d, self.n)[face],
                **{f"p_{axis}": partial(self._offsets, i) for i, axis in enumerate(axes)},
            }
        )


def check_graph(graph: Any) -> DualGraph:
    """Return the graph; raise InputError if it is not one."""
    return check_kind(graph, "graph", DualGraph, "a dual graph (fluxforge.dual(mesh, boundary))")


def check_plain_walls(graph: DualGraph, user: str) -> None:
    """Raise InputError, naming the tag, for a Robin or an inflow wall, which `user` does not support."""
    odd = np.zeros(graph.ghosts, bool) if graph.inflow is None else graph.inflow
    if graph.transfer is not None:
        odd = odd | np.isfinite(graph.transfer)
    if odd.any():
        tag = graph.tags[int(graph.tag[odd][0])]
        raise InputError(f"the boundary condition of {tag!r}: {user} supports only a value, neumann:Q or periodic:TAG")


def normal_part(vectors: FaceVectors, n: FaceVectors) -> FaceField:
    """v·n of one vector per face."""
    along: FaceField = np.einsum("fi,fi->f", vectors, n)
    return along


def tangential_length(vectors: FaceVectors, n: FaceVectors) -> FaceField:
    """|v − (v·n) n| of one vector per face: not √(v² − (v·n)²), which loses half the digits where v is along n."""
    across: FaceField = np.linalg.norm(vectors - normal_part(vectors, n)[:, None] * n, axis=1)
    return across


@dataclass(frozen=True)
class ParameterFields:
    """The values of an equation's parameters on one graph, by name.

    `constants` are numbers, `cells` are scalars given per cell. `slots` are values of faces as the receiving cell sees
    them: a scalar given per face, `a_n` = a·n, `K_nn` = n·K n. `tangential`, computed on first access, are
    `a_t` = |a − (a·n) n|, `K_nt` = |K n − (n·K n) n| and the components `K_n_x`, … of K n, if they are known.
    """

    constants: Mapping[str, float]
    cells: Mapping[str, CellField]
    slots: Mapping[str, SlotField]
    tangential: Mapping[str, SlotField] = field(default_factory=lambda: OnDemand({}))


NO_PARAMETERS = ParameterFields({}, {}, {})
