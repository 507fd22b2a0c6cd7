"""The only place where a symbol is created.

A cell that receives is P, its neighbour across a face N, and the cell at the end of a two-hop path P → N → Q is Q.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache

import sympy as sp


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


PARAMETERS = ("alpha", "dt")
NODE_FIELDS = ("T", "S")
NODE_GEOMETRY = ("V",)
EDGE_GEOMETRY = ("A", "delta", "n_x", "n_y", "d_x", "d_y", "chi")
ENDS = {Hop.EDGE: ("P", "N"), Hop.PATH: ("P", "N", "Q"), Hop.RING: ("P", "N", "Q")}
GEOMETRY = {
    Hop.EDGE: EDGE_GEOMETRY,
    Hop.PATH: tuple(f"{name}_{leg}" for leg in ("PN", "NQ") for name in EDGE_GEOMETRY),
    Hop.RING: (
        *(f"{name}_{leg}" for leg in ("PN", "NQ") for name in ("A", "delta")),
        "delta_PQ",
        "d_PQ_x",
        "d_PQ_y",
    ),
}
NEXT = "T_new"


@cache
def symbol(name: str) -> sp.Symbol:
    """The real symbol of that name: the same object every time."""
    return sp.Symbol(name, real=True)


def table(names: Iterable[str]) -> dict[str, sp.Symbol]:
    """Names and their symbols, as the parser wants them."""
    return {name: symbol(name) for name in names}


def message_symbols(hop: Hop, earlier: Iterable[str]) -> Mapping[str, sp.Symbol]:
    """What a message of this hop may contain: parameters, geometry, and every end's fields and earlier outputs."""
    per_end = (*NODE_FIELDS, *NODE_GEOMETRY, *earlier)
    return table((*PARAMETERS, *GEOMETRY[hop], *(f"{name}_{end}" for name in per_end for end in ENDS[hop])))


def output_symbols(sums: Iterable[str], earlier: Iterable[str]) -> Mapping[str, sp.Symbol]:
    """What an output may contain: parameters, the cell's own fields, this stage's sums and earlier outputs."""
    return table((*PARAMETERS, *NODE_FIELDS, *NODE_GEOMETRY, *sums, *earlier))
