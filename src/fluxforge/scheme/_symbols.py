"""The symbols of a scheme.

A cell that receives is P, its neighbour across a face N, and the cell at the end of a two-hop path P → N → Q is Q.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache

import sympy as sp

from fluxforge.expression._symbols import COORDINATES, symbols_of
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.pde._parameter import NUMBER, Rank, Unit, Where, dimensions, multiply_units, unit


class Hop(StrEnum):
    """The neighbourhood over which a message is summed.

    - `edge`: the neighbours N of P, ghosts included;
    - `path`: the directed paths P → N → Q with N a cell, Q = P and ghosts Q included;
    - `ring`: the distinct cells Q at distance exactly two, path features averaged over the paths from P to Q;
    - `line`: the lines B – P – N – F through the faces of P, ghosts N included: B is the node across the face of P
      opposite to the one shared with N, F the node across the face of N opposite to it, and N itself where N is a
      ghost. For meshes whose cells have opposite faces: quadrilaterals.
    """

    EDGE = "edge"
    PATH = "path"
    RING = "ring"
    LINE = "line"


class Reduction(StrEnum):
    """How the messages of a cell's neighbours are combined: their sum, minimum or maximum."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"


class Ghost(StrEnum):
    """The value of a stage's output at a Dirichlet ghost: g, its owner's value, or 0.

    A Neumann ghost moves with its owner, so it shows the owner's value, plus q δ where the rule is `dirichlet`.
    """

    DIRICHLET = "dirichlet"
    OWNER = "owner"
    ZERO = "zero"


NODE_FIELDS = ("T", "S")
"""The fields of a cell: the unknown, whatever the equation calls it, and its source."""

NODE_GEOMETRY = ("V",)
EDGE_GEOMETRY = ("A", "delta", "n_x", "n_y", "d_x", "d_y", "chi")
IN_SPACE = ("n_z", "d_z")
"""Further components on faces of meshes in space."""

INVARIANTS = ("d_n", "d_t")
"""d·n and |d − (d·n) n|: independent of the dimension, of rotations of the mesh, and of the side of the face."""

OFFSETS = tuple(f"p_{axis}" for axis in COORDINATES)
"""From the centroid of P to the centre of the face; seen from N it is p − d."""

TURNED = tuple(f"{vector}_{axis}" for vector in ("n", "d") for axis in COORDINATES)
"""Geometry that changes sign seen from the other side of a face; for parameters see `turned_names`."""

ON_FACES = (*EDGE_GEOMETRY, *IN_SPACE, *INVARIANTS)

ENDS = {
    Hop.EDGE: ("P", "N"),
    Hop.PATH: ("P", "N", "Q"),
    Hop.RING: ("P", "N", "Q"),
    Hop.LINE: ("P", "N", "B", "F"),
}
ALL_ENDS = tuple(dict.fromkeys(end for ends in ENDS.values() for end in ends))
LEGS = {Hop.EDGE: ("",), Hop.PATH: ("_PN", "_NQ"), Hop.RING: (), Hop.LINE: ("",)}
GEOMETRY = {
    Hop.EDGE: (*ON_FACES, *OFFSETS),
    Hop.LINE: (*ON_FACES, *OFFSETS),
    Hop.PATH: tuple(f"{name}{leg}" for leg in LEGS[Hop.PATH] for name in ON_FACES),
    Hop.RING: (
        *(f"{name}{leg}" for leg in LEGS[Hop.PATH] for name in ("A", "delta")),
        "delta_PQ",
        "d_PQ_x",
        "d_PQ_y",
        "d_PQ_z",
    ),
}
NEXT = "T_new"
STEP = "dt"


def turned_names(equation: Equation) -> tuple[str, ...]:
    """Symbols that change sign seen from the other side of a face: n, d, and a·n and K n of the parameters."""
    vectors = (p.normal_name for p in equation.parameters if p.rank is Rank.VECTOR)
    return (*TURNED, *vectors, *(name for p in equation.parameters for name in p.conormal_names))


def constants(equation: Equation) -> tuple[str, ...]:
    """Symbols with one value in a run: the constant scalars of the equation, and Δt."""
    return (*(name for p in equation.parameters if p.where is Where.CONSTANT for name in p.cell_names), STEP)


def message_symbols(hop: Hop, earlier: Iterable[str], equation: Equation = HEAT) -> Mapping[str, sp.Symbol]:
    """The symbols of messages of this hop: parameters, geometry, and every end's fields and earlier outputs."""
    per_end = (*NODE_FIELDS, *NODE_GEOMETRY, *earlier)
    along = [name for p in equation.parameters for leg in LEGS[hop] for name in p.edge_names(ENDS[hop], leg)]
    apart = [name for p in equation.parameters for name in (*p.tangential_names, *p.conormal_names)]
    along += [f"{name}{leg}" for name in apart for leg in LEGS[hop]]
    at_ends = (f"{name}_{end}" for name in per_end for end in ENDS[hop])
    return symbols_of((*constants(equation), *along, *GEOMETRY[hop], *at_ends))


def invariant_names(equation: Equation = HEAT) -> tuple[str, ...]:
    """The scalars of an edge that no rotation changes and that follow from d, n and the equation's parameters.

    `d_n` and `d_t`; `a_n` = a·n and `a_t` = |a − (a·n) n| of a vector; `K_nn` = n·K n and `K_nt` = |K n − (n·K n) n| of
    a tensor; a scalar given per face.
    """
    on_faces = [p for p in equation.parameters if p.rank is not Rank.SCALAR or p.where is Where.FACE]
    return (*INVARIANTS, *(name for p in on_faces for name in (*p.edge_names(), *p.tangential_names)))


def output_symbols(sums: Iterable[str], earlier: Iterable[str], equation: Equation = HEAT) -> Mapping[str, sp.Symbol]:
    """The symbols of outputs: parameters, the cell's own fields, this stage's sums and earlier outputs."""
    own = (name for p in equation.parameters for name in p.cell_names)
    return symbols_of((STEP, *own, *NODE_FIELDS, *NODE_GEOMETRY, *sums, *earlier))


@cache
def symbol_units(equation: Equation = HEAT, dimension: int = 2) -> Mapping[str, Unit]:
    """The units of the symbols of messages and outputs, as far as the equation states those of its parameters.

    In two dimensions a volume is an area, and the area of a face a length.
    """
    length, time = unit(length=1), unit(time=1)
    known = {"A": unit(length=dimension - 1), "V": unit(length=dimension), "delta": length, STEP: time}
    known |= dict.fromkeys(INVARIANTS, length)
    known |= dict.fromkeys((*(f"n_{axis}" for axis in COORDINATES), "chi"), NUMBER)
    known |= {f"{name}_{axis}": length for name in ("d", "d_PQ", "p") for axis in COORDINATES}
    for p in equation.parameters:
        if p.unit is not None:
            apart = (*p.tangential_names, *p.conormal_names)
            known |= dict.fromkeys((*p.cell_names, *p.edge_names(), *apart), p.unit)
    known["T"] = equation.unknown_unit
    capacity = dimensions(equation.capacity, known)
    if isinstance(capacity, Unit):
        known["S"] = multiply_units(capacity, equation.unknown_unit, unit(time=-1))
    places = (*ALL_ENDS, "PN", "NQ", "PQ")
    return {f"{name}_{place}": found for name, found in known.items() for place in places} | known
