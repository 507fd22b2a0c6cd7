"""Parameters of an equation: what they are called, of which rank, given where, and in which units."""

from dataclasses import dataclass
from enum import StrEnum

from fluxforge.expression import COORDINATES
from fluxforge.pde._units import Unit


class Rank(StrEnum):
    """A number, a vector (one number per coordinate) or a symmetric tensor."""

    SCALAR = "scalar"
    VECTOR = "vector"
    TENSOR = "tensor"


class Where(StrEnum):
    """Whether a parameter is one value for the whole domain, one per cell, or one per face."""

    CONSTANT = "constant"
    CELL = "cell"
    FACE = "face"


# A scalar may vary from cell to cell or from face to face; a velocity is known on faces, where fluxes need it.
PLACES = {
    Rank.SCALAR: frozenset(Where),
    Rank.VECTOR: frozenset({Where.CONSTANT, Where.FACE}),
    Rank.TENSOR: frozenset({Where.CONSTANT}),
}


@dataclass(frozen=True)
class Parameter:
    """One parameter. `unit` is None where it is not stated; `default` is the value of a scalar nobody sets.

    In a flux a scalar is its name (`k_P` and `k_N`, if it is given per cell), a vector a its component along the
    face's normal, `a_n` = a·n, and a tensor K `K_nn` = n·K n: the same in every dimension, however the mesh is turned.
    """

    name: str
    meaning: str = ""
    rank: Rank = Rank.SCALAR
    where: Where = Where.CONSTANT
    unit: Unit | None = None
    default: float | None = None

    def edge_names(self, ends: tuple[str, ...] = ("P", "N"), leg: str = "") -> tuple[str, ...]:
        """What a message over an edge may call it; `leg` is the suffix of that edge on a path of two."""
        if self.where is Where.CELL:
            return tuple(f"{self.name}_{end}" for end in ends)
        if self.rank is Rank.SCALAR:
            return (self.name,) if self.where is Where.CONSTANT else (f"{self.name}{leg}",)
        return (f"{self.normal_name}{leg}",)

    @property
    def cell_names(self) -> tuple[str, ...]:
        """What an output of a cell may call it: a scalar that a cell has."""
        return (self.name,) if self.rank is Rank.SCALAR and self.where is not Where.FACE else ()

    @property
    def normal_name(self) -> str:
        """`a_n` = a·n of a vector, `K_nn` = n·K n of a tensor."""
        return f"{self.name}_{'n' if self.rank is Rank.VECTOR else 'nn'}"

    @property
    def tangential_names(self) -> tuple[str, ...]:
        """`a_t` = |a − (a·n) n| of a vector, `K_nt` = |K n − (n·K n) n| of a tensor; a scalar has none."""
        return {Rank.SCALAR: (), Rank.VECTOR: (f"{self.name}_t",), Rank.TENSOR: (f"{self.name}_nt",)}[self.rank]

    def component_names(self, dimension: int) -> tuple[str, ...]:
        """`a_x`, `a_y` of a vector; `K_xx`, `K_xy`, `K_yx`, `K_yy` of a tensor, row by row, symmetric."""
        axes = COORDINATES[:dimension]
        if self.rank is Rank.VECTOR:
            return tuple(f"{self.name}_{axis}" for axis in axes)
        return tuple(f"{self.name}_{''.join(sorted((row, column)))}" for row in axes for column in axes)
