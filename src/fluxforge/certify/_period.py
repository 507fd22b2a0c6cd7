"""The rows of a scheme's generator that belong to one period of a lattice, far from its walls."""

from dataclasses import dataclass

import numpy as np

from fluxforge.certify._families import Levels
from fluxforge.certify._problems import as_graph
from fluxforge.mesh._parameters import Settings
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._assemble import generator

# Cells per period of each lattice, and a size whose middle period sees no boundary through any scheme of few hops.
PERIODS = {"squares": 1, "right": 2, "cross": 4, "equilateral": 2}
IN_SPACE = {"cubes": 1}
LATTICE_SIZE, IN_SPACE_SIZE = 21, 9


def lattice_size(family: str) -> int:
    """Cells or periods along a side of the lattice whose middle is looked at."""
    return IN_SPACE_SIZE if family in IN_SPACE else LATTICE_SIZE


@dataclass(frozen=True)
class Period:
    """The generator's rows of one period: what each cell of it receives from cells of each kind, displaced by d."""

    row: np.ndarray
    kind: np.ndarray
    value: np.ndarray
    d: np.ndarray
    cells: int
    size: float

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.d.shape[1]


def middle_period(
    scheme: Scheme, family: str, *, parameters: Settings | None = None, size: float = 1.0, n: int | None = None
) -> Period:
    """One period in the middle of the lattice, far from its walls; G over `size`."""
    n = lattice_size(family) if n is None else n
    graph = as_graph(Levels(family, (n,)).refine_to(n))
    G = generator(scheme, graph, parameters=parameters).M / size
    count = {**PERIODS, **IN_SPACE}[family]
    first = sum((n // 2) * n**k for k in range(graph.dimension)) * count
    rows = np.arange(first, first + count)
    block = G[rows].tocoo()
    d = graph.x[block.col] - graph.x[rows[block.row]]
    return Period(block.row, block.col % count, block.data, d, count, float(graph.V.mean()) ** (1 / graph.dimension))
