"""The symbols of a scheme.

A cell that receives is P, its neighbour across a face N, and the cell at the end of a two-hop path P → N → Q is Q.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache

import sympy as sp

from fluxforge.expression import COORDINATES, symbols_of
from fluxforge.pde import HEAT, NUMBER, Equation, Unit, Where, dimensions, multiply_units, unit


class Hop(StrEnum):
    """Over what a message is summed.

    - `edge`: the neighbours N of P, ghosts included;
    - `path`: the directed paths P → N → Q with N a cell, Q = P and ghosts Q included;
    - `ring`: the distinct cells Q at distance exactly two, path features averaged over the paths from P to Q.
    """

    EDGE = "edge"
    PATH = "path"
    RING = "ring"


class Ghost(StrEnum):
    """What a Dirichlet ghost shows of a stage's output: g, its owner's value, or nothing.

    A Neumann ghost moves with its owner, so it shows the owner's value, plus q δ where the rule is `dirichlet`.
    """

    DIRICHLET = "dirichlet"
    OWNER = "owner"
    ZERO = "zero"


NODE_FIELDS = ("T", "S")
"""What a cell has: the unknown, whatever the equation calls it, and its source."""

NODE_GEOMETRY = ("V",)
EDGE_GEOMETRY = ("A", "delta", "n_x", "n_y", "d_x", "d_y", "chi")
IN_SPACE = ("n_z", "d_z")
"""What a face of a mesh in space has besides."""

ENDS = {Hop.EDGE: ("P", "N"), Hop.PATH: ("P", "N", "Q"), Hop.RING: ("P", "N", "Q")}
LEGS = {Hop.EDGE: ("",), Hop.PATH: ("_PN", "_NQ"), Hop.RING: ()}
GEOMETRY = {
    Hop.EDGE: (*EDGE_GEOMETRY, *IN_SPACE),
    Hop.PATH: tuple(f"{name}{leg}" for leg in LEGS[Hop.PATH] for name in (*EDGE_GEOMETRY, *IN_SPACE)),
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


def constants(equation: Equation) -> tuple[str, ...]:
    """What is one number in a whole run: the constant scalars of the equation, and Δt."""
    return (*(name for p in equation.parameters if p.where is Where.CONSTANT for name in p.cell_names), STEP)


def message_symbols(hop: Hop, earlier: Iterable[str], equation: Equation = HEAT) -> Mapping[str, sp.Symbol]:
    """What a message of this hop may contain: parameters, geometry, and every end's fields and earlier outputs."""
    per_end = (*NODE_FIELDS, *NODE_GEOMETRY, *earlier)
    along = (name for p in equation.parameters for leg in LEGS[hop] for name in p.edge_names(ENDS[hop], leg))
    at_ends = (f"{name}_{end}" for name in per_end for end in ENDS[hop])
    return symbols_of((*constants(equation), *along, *GEOMETRY[hop], *at_ends))


def output_symbols(sums: Iterable[str], earlier: Iterable[str], equation: Equation = HEAT) -> Mapping[str, sp.Symbol]:
    """What an output may contain: parameters, the cell's own fields, this stage's sums and earlier outputs."""
    own = (name for p in equation.parameters for name in p.cell_names)
    return symbols_of((STEP, *own, *NODE_FIELDS, *NODE_GEOMETRY, *sums, *earlier))


@cache
def symbol_units(equation: Equation = HEAT, dimension: int = 2) -> Mapping[str, Unit]:
    """The units of the symbols of messages and outputs, as far as the equation states those of its parameters.

    In two dimensions a volume is an area, and the area of a face a length.
    """
    length, time = unit(length=1), unit(time=1)
    known = {"A": unit(length=dimension - 1), "V": unit(length=dimension), "delta": length, STEP: time}
    known |= dict.fromkeys((*(f"n_{axis}" for axis in COORDINATES), "chi"), NUMBER)
    known |= {f"{name}_{axis}": length for name in ("d", "d_PQ") for axis in COORDINATES}
    for p in equation.parameters:
        if p.unit is not None:
            known |= dict.fromkeys((*p.cell_names, *p.edge_names()), p.unit)
    known["T"] = equation.unknown_unit
    capacity = dimensions(equation.capacity, known)
    if isinstance(capacity, Unit):
        known["S"] = multiply_units(capacity, equation.unknown_unit, unit(time=-1))
    places = (*ENDS[Hop.PATH], "PN", "NQ", "PQ")
    return {f"{name}_{place}": found for name, found in known.items() for place in places} | known
