"""The mesh families of a refinement study, and the sizes at which they are refined."""

from dataclasses import dataclass

from fluxforge._arguments import check_kind, check_whole
from fluxforge.certify._space_graphs import cubes
from fluxforge.errors import InputError
from fluxforge.mesh import FAMILIES as GENERATORS
from fluxforge.mesh import DualGraph, Mesh, generate
from fluxforge.scheme import FAMILIES

# Sizes n of the structured families; unstructured ones are asked for as many cells as triangles of that size.
# Those of right triangles are the ones with published errors.
FULL = {
    "squares": (10, 20, 50, 100),
    "right": (10, 20, 50, 100),
    "cross": (6, 12, 30, 50),
    "equilateral": (9, 18, 36, 72),
    "jittered": (9, 18, 36, 72),
    "regular": (9, 18, 36, 72),
    "irregular": (9, 18, 36, 72),
}
QUICK = {
    "squares": (8, 16, 32, 64),
    "right": (6, 12, 24, 48),
    "cross": (4, 8, 16, 32),
    "equilateral": (6, 12, 24, 48),
    "jittered": (6, 12, 24, 48),
    "regular": (6, 12, 24, 48),
    "irregular": (6, 12, 24, 48),
}
# In space, on graphs made here.
SPACE = {"cubes": (4, 6, 8, 12)}
LATTICES = ("squares", "right", "cross", "equilateral", "cubes")
SEEDS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Levels:
    """A family and the sizes it is refined through."""

    family: str
    sizes: tuple[int, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        """One mesh of a lattice says all; random families are judged by several, since single ones scatter."""
        return SEEDS[:1] if self.family in LATTICES else SEEDS

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return 3 if self.family in SPACE else 2

    def refined(self, n: int, seed: int = SEEDS[0]) -> Mesh | DualGraph:
        """The mesh of that size, in space its graph."""
        return cubes(n) if self.family in SPACE else self.mesh(n, seed)

    def mesh(self, n: int, seed: int = SEEDS[0]) -> Mesh:
        """The mesh of that size: the same on every machine, so unstructured ones come from the built-in generator."""
        if self.family in ("regular", "irregular"):
            return generate(kind=self.family, cells=2 * n * n, seed=seed, engine="builtin")
        return GENERATORS[self.family](n, seed)


def count_cells(mesh: Mesh | DualGraph) -> int:
    """The number of cells of a mesh or a graph."""
    return mesh.cells if isinstance(mesh, DualGraph) else len(mesh.cells)


def choose(
    families: tuple[str, ...] | None, levels: int | None, *, quick: bool, dimension: int | None = None
) -> tuple[Levels, ...]:
    """The families asked for, each with its sizes; more levels go on doubling the last.

    By default all of the plane, or those in space for formulas written for three coordinates.
    """
    wanted = (tuple(SPACE) if dimension == 3 else FAMILIES) if families is None else families
    check_kind(wanted, "families", tuple | list, "a tuple of names")
    if stray := [family for family in wanted if family not in (*FAMILIES, *SPACE)]:
        raise InputError(f"unknown mesh family {stray[0]!r:.60}; known: {', '.join((*FAMILIES, *SPACE))}")
    if len({family in SPACE for family in wanted}) > 1:
        raise InputError(f"families of the plane and of space ({', '.join(SPACE)}) are certified one after the other")
    if levels is not None and not 1 <= check_whole(levels, "levels") <= 7:
        raise InputError(f"levels should be between 1 and 7, got {levels}")
    chosen = (QUICK if quick else FULL) | SPACE
    return tuple(Levels(family, _extended(chosen[family], levels)) for family in wanted)


def _extended(sizes: tuple[int, ...], levels: int | None) -> tuple[int, ...]:
    if levels is None:
        return sizes
    while len(sizes) < levels:
        sizes = (*sizes, 2 * sizes[-1])
    return sizes[:levels]
