"""The dual graph as a record: a node per cell, an edge per face, and a ghost node per boundary face.

Beside it the fields of an equation's parameters; the values of Robin and inflow ghosts, which depend on them; and the
cells beyond the neighbours: two-hop paths, rings of distance two, and lines of cells through opposite faces.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import sympy as sp
from jaxtyping import Bool, Float, Int

from fluxforge._arguments import check_kind
from fluxforge._types import CellField, CellVectors, FaceField, FaceIndex, FaceVectors, SlotField, SlotIndex, SlotMask
from fluxforge.errors import InputError, MeshError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.pde._equation import Equation, differentiate

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


@dataclass(frozen=True, eq=False)
class DualGraph:
    """Cells as nodes, faces as edges, boundary faces as edges to ghosts.

    Faces between two cells come first (`interior` of them), then the boundary faces; boundary face `interior + b` ends
    in ghost node `cells + b`. Along a face, `n` and `d` point from its owner to the other side, |d| = `delta`.

    - A Dirichlet ghost lies at the face centre and has the value g.
    - A Neumann ghost is the owner's mirror image along the face normal, d = δ n, and has the value T_P + q δ.
    - A Robin ghost lies where the normal from the owner meets the face; `transfer` is its h, nan at other ghosts.
    - An `inflow` ghost lies at the face centre and has the value g where the flow enters, T_P where it leaves.
    - The ghosts of both have `follow`·T_P + (1 − `follow`)·`value`. `follow` depends on the equation and is None
      until `close_walls` has set it; 0 at Dirichlet ghosts.

    Periodic faces are the last `wrapped` faces between two cells: d leads from P to the image of N.

    Each cell refers to its faces through `slots`, a fixed number per mesh (3 for triangles, 4 with quadrilaterals):
    `slot_face`, `slot_node` and `slot_sign` (+1 where the cell owns the face); `slot_mask` is false in the unused
    fourth slot of a triangle, which points at the cell itself. `region` is the number of each cell's region in
    `regions`, −1 for a cell in none, and None for a mesh without regions.

    `fluxforge.graph` registers it as a JAX pytree, so that this module does not import JAX.
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
        """One coordinate of p, from each cell to the centres of its faces; through a periodic face to its image."""
        face = self.slot_face
        offset = self.centre[face, i] - self.x[:, None, i]
        if not self.wrapped:
            return offset
        # The far cell of a periodic face sees the image of its centre.
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


def check_graph(graph: Any, name: str = "graph") -> DualGraph:
    """Return the graph; raise InputError, naming the argument, if it is not one."""
    return check_kind(graph, name, DualGraph, "a dual graph (fluxforge.dual(mesh, boundary))")


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
    """The values of an equation's parameters on one graph.

    `constants` by name; `cells` of scalars given per cell; `slots` of what a face has, as the cell that receives sees
    it: a scalar given per face, `a_n` = a·n, `K_nn` = n·K n; `tangential`, made on demand, of `a_t` = |a − (a·n) n|,
    `K_nt` = |K n − (n·K n) n| and the components `K_n_x`, … of K n, as far as they are known.
    """

    constants: Mapping[str, float]
    cells: Mapping[str, CellField]
    slots: Mapping[str, SlotField]
    tangential: Mapping[str, SlotField] = field(default_factory=lambda: OnDemand({}))


NO_PARAMETERS = ParameterFields({}, {}, {})


WallField = Float[np.ndarray, " boundary"]


def close_walls(graph: DualGraph, equation: Equation, fields: ParameterFields) -> DualGraph:
    """The graph with `follow`, the derivative of a ghost's value by its owner's; unchanged where no wall needs it.

    - Robin, −K ∂u/∂n = h (u − T): the flux K (u_P − u_g)/δ through the wall is h (u_g − T), so that
      u_g = (K/δ u_P + h T)/(K/δ + h) and `follow` = (K/δ)/(K/δ + h).
    - Inflow: 1 where a·n f′ ≥ 0, and 0 elsewhere. Where f is not linear that depends on the state: 0 everywhere here,
      and steppers decide at every step.
    """
    if graph.transfer is None and graph.inflow is None:
        return graph
    follow = graph.neumann.astype(float)
    if graph.transfer is not None:
        follow = np.where(np.isfinite(graph.transfer), _robin(graph, equation, fields), follow)
    if graph.inflow is not None and (slope := linear_speed(equation)) is not None:
        speed = wall_velocity(graph, equation, fields) * evaluate(slope, _symbols(fields.constants), np)
        follow = np.where(graph.inflow & (speed >= 0), 1.0, follow)
    return replace(graph, follow=follow)


def linear_speed(equation: Equation) -> sp.Expr | None:
    """f′ where it does not depend on the unknown."""
    slope = differentiate(equation.transported, equation.u)
    return None if equation.u in slope.free_symbols else slope


def wall_velocity(graph: DualGraph, equation: Equation, fields: ParameterFields) -> WallField:
    """a·n at the boundary faces, n pointing out of the domain."""
    assert equation.velocity is not None
    return _at_walls(graph, fields.slots[equation.parameter(equation.velocity).normal_name])


def wall_conductance(graph: DualGraph, equation: Equation, fields: ParameterFields) -> WallField:
    """K/δ between the owners and the ghosts of the boundary faces."""
    K = np.broadcast_to(_conductivity(graph, equation, fields), (graph.ghosts,))
    conductance: WallField = K / graph.delta[graph.interior :]
    return conductance


def _robin(graph: DualGraph, equation: Equation, fields: ParameterFields) -> WallField:
    assert graph.transfer is not None
    conductance = wall_conductance(graph, equation, fields)
    total = conductance + graph.transfer
    with np.errstate(invalid="ignore", divide="ignore"):
        # Neither conduction nor transfer: no flux, as at an insulated wall.
        return np.where(total > 0, conductance / total, 1.0)


def _conductivity(graph: DualGraph, equation: Equation, fields: ParameterFields) -> Any:
    """K of the owners of the boundary faces, along the normal."""
    tensor = equation.diffusion_tensor
    if tensor is not None:
        return _at_walls(graph, fields.slots[tensor.normal_name])
    if equation.u in equation.diffusion.free_symbols:
        raise InputError(
            f"equation {equation.name!r} has a diffusivity that depends on {equation.unknown}: no robin wall"
        )
    owner = graph.owner[graph.interior :]
    known: dict[str, Any] = {**fields.constants, **{name: value[owner] for name, value in fields.cells.items()}}
    known |= {name: _at_walls(graph, value) for name, value in fields.slots.items()}
    return evaluate(equation.diffusion, _symbols(known), np)


def _symbols(values: Any) -> dict[sp.Symbol, Any]:
    return {symbol(name): value for name, value in values.items()}


def _at_walls(graph: DualGraph, slots: np.ndarray) -> WallField:
    """The value of each boundary face, from the slot of its owner."""
    cell, slot = np.nonzero(graph.slot_mask & (graph.slot_face >= graph.interior))
    found = np.empty(graph.ghosts)
    found[graph.slot_face[cell, slot] - graph.interior] = slots[cell, slot]
    return found


# The normals of opposite faces are less than 37° from opposite: a square sheared or jittered as far as that still has
# lines of cells, a regular tetrahedron (109°) and a right triangle (135°) do not.
_OPPOSITE = -0.8


class Paths(NamedTuple):
    """The directed paths P → N → Q of each cell P, N a cell, Q any node next to N: P itself and ghosts included.

    Path number k·slots + l leaves P by its slot k and N by its slot l. Where `mask` is false there is no such path
    (N is a ghost, or a slot is unused), and the indices point at P.
    """

    middle: Int[np.ndarray, "cells paths"]
    end: Int[np.ndarray, "cells paths"]
    first_slot: Int[np.ndarray, " paths"]
    second_slot: Int[np.ndarray, " paths"]
    mask: Bool[np.ndarray, "cells paths"]


def paths(graph: DualGraph) -> Paths:
    """All directed two-hop paths, in fixed slots."""
    slots = check_graph(graph).slot_node.shape[1]
    first, second = np.divmod(np.arange(slots * slots), slots)
    cell = np.arange(graph.cells, dtype=np.int32)[:, None]
    middle = graph.slot_node[:, first]
    real = graph.slot_mask[:, first] & (middle < graph.cells)
    middle = np.where(real, middle, cell)
    mask = real & graph.slot_mask[middle, second]
    end = np.where(mask, graph.slot_node[middle, second], cell)
    return Paths(middle, end, first, second, mask)


class Ring(NamedTuple):
    """The distinct cells Q at graph distance exactly two from each cell P.

    `node` holds them in fixed slots (P itself where `mask` is false); `slot_of_path` says which of them each path of
    `paths(graph)` leads to, −1 for paths that return, end beside P or end in a ghost: averaging a feature over the
    paths of a pair is a sum over equal slots divided by `multiplicity`.
    """

    node: Int[np.ndarray, "cells ring"]
    mask: Bool[np.ndarray, "cells ring"]
    slot_of_path: Int[np.ndarray, "cells paths"]
    multiplicity: Int[np.ndarray, "cells ring"]


def ring(graph: DualGraph, steps: Paths | None = None) -> Ring:
    """The cells at distance exactly two, found by sorting the path ends of each cell."""
    steps = paths(graph) if steps is None else steps
    cell = np.arange(graph.cells)[:, None]
    beside = (steps.end[:, :, None] == np.where(graph.slot_mask, graph.slot_node, -1)[:, None, :]).any(axis=2)
    far = steps.mask & (steps.end < graph.cells) & (steps.end != cell) & ~beside
    end = np.where(far, steps.end, np.iinfo(np.int32).max)
    order = np.argsort(end, axis=1, kind="stable")
    sorted_end = np.take_along_axis(end, order, axis=1)
    sorted_far = np.take_along_axis(far, order, axis=1)
    new = sorted_far.copy()
    new[:, 1:] &= sorted_end[:, 1:] != sorted_end[:, :-1]
    slot = np.where(sorted_far, np.cumsum(new, axis=1) - 1, -1)
    slot_of_path = np.empty_like(slot)
    np.put_along_axis(slot_of_path, order, slot, axis=1)
    width = max(int(slot.max(initial=-1)) + 1, 1)
    node = np.tile(cell.astype(np.int32), (1, width))
    place = (cell * width + slot_of_path)[far]
    node.ravel()[place] = steps.end[far]
    multiplicity = np.bincount(place, minlength=node.size).reshape(node.shape).astype(np.int32)
    return Ring(node, multiplicity > 0, slot_of_path.astype(np.int32), multiplicity)


class Lines(NamedTuple):
    """Per cell and slot, the node behind the cell and the node ahead of its neighbour, on the line through the face."""

    behind: Int[np.ndarray, "cells slots"]
    ahead: Int[np.ndarray, "cells slots"]


def lines(graph: DualGraph) -> Lines:
    """The lines through every face of every cell; unused slots point at the cell itself.

    Ahead of a ghost is the ghost itself. Raises MeshError, naming the cell, where a cell has a face without an opposite
    one.
    """
    opposite, alone = _pair_slots(check_graph(graph))
    if alone.size:
        place = ", ".join(f"{coordinate:.4g}" for coordinate in graph.x[alone[0]])
        raise MeshError(
            f"{graph.origin}: cell {alone[0]} at ({place}) has a face without an opposite one, so that no line of "
            "cells goes through it: take bounded-van-leer, barth-jespersen or another scheme for cells of any shape, "
            "or a mesh of squares"
        )
    behind = np.take_along_axis(graph.slot_node, opposite, axis=1)
    used, owned = graph.slot_mask, graph.slot_sign > 0
    behind_owner, behind_other = (np.zeros(len(graph.A), np.int32) for _ in range(2))
    behind_owner[graph.slot_face[used & owned]] = behind[used & owned]
    behind_other[graph.slot_face[used & ~owned]] = behind[used & ~owned]
    ahead = np.where(owned, behind_other[graph.slot_face], behind_owner[graph.slot_face])
    ahead = np.where(graph.slot_node < graph.cells, ahead, graph.slot_node)
    cell = np.arange(graph.cells, dtype=np.int32)[:, None]
    return Lines(np.where(used, behind, cell).astype(np.int32), np.where(used, ahead, cell).astype(np.int32))


def has_lines(graph: DualGraph) -> bool:
    """Whether every face of every cell has an opposite one, so that lines of cells go through all of them."""
    return not _pair_slots(graph)[1].size


def _pair_slots(graph: DualGraph) -> tuple[SlotIndex, Int[np.ndarray, " alone"]]:
    """Of each slot, the slot whose normal is most nearly opposite; and the cells where that does not hold both ways."""
    slots = graph.slot_node.shape[1]
    n = graph.n[graph.slot_face] * graph.slot_sign[..., None]
    best = np.full(graph.slot_node.shape, np.inf)
    opposite = np.zeros(graph.slot_node.shape, np.int32)
    for k in range(slots):
        for other in range(slots):
            if other == k:
                continue
            cosine = np.where(graph.slot_mask[:, other], np.einsum("ci,ci->c", n[:, k], n[:, other]), np.inf)
            nearer = cosine < best[:, k]
            best[nearer, k], opposite[nearer, k] = cosine[nearer], other
    back = np.take_along_axis(opposite, opposite, axis=1)
    paired = (best <= _OPPOSITE) & (back == np.arange(slots))
    return opposite, np.flatnonzero((graph.slot_mask & ~paired).any(axis=1))
