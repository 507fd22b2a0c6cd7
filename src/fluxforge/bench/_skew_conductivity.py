"""Discovered fluxes and the corrected one with a tensor conductivity, and with a jump of the conductivity.

- `tensor`: K = diag(10, 1) turned by 45°, T = cos(a·x + b), source (a·K a) T;
- `jump`: k = 1 left of x = ½ and 100 right of it, T = w/k with w = sin(p (x − ½)) cos(q y + b), source (p² + q²) w, so
  that T and k ∂T/∂x are continuous. The meshes are triangles with displaced points and a line of faces at x = ½.

The wave vectors a and (p, q) are random, with lengths between 2 and 6.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fluxforge.mesh._boundary import Dirichlet
from fluxforge.mesh._mesh import Mesh
from fluxforge.scheme._damped import SKEWED
from fluxforge.skew._problems import make_mesh
from fluxforge.stepping._steady import steady

# Other seed than those of the search, its validation and the other rows of the benchmark.
_SEED, PROBLEMS = 4 * 10**6, 2
K = ((5.5, 4.5), (4.5, 5.5))
RIGHT = 100.0
TENSOR_FAMILIES = ("right", "jittered", "irregular", "quadrilaterals")
_LINE = "right, moved, a line of faces at x = 1/2"


@dataclass(frozen=True)
class ConductivityRow:
    """A scheme on one mesh: RMS of the L2 errors, order from the next coarser size, ratio to corrected's error."""

    problem: str
    mesh: str
    scheme: str
    cells: int
    error: float
    order: float | None
    over_corrected: float


@dataclass(frozen=True)
class _Case:
    """A steady problem: equation and parameters, wall values and source as formulas of x and y, and exact solution."""

    equation: str
    parameters: dict[str, str | list[list[float]]]
    wall: str
    source: str
    exact: Callable[[np.ndarray, np.ndarray], np.ndarray]


def _waves(rng: np.random.Generator) -> tuple[float, float, float]:
    length, angle, phase = rng.uniform(2.0, 6.0), rng.uniform(0.2, 1.3), rng.uniform(0.0, 6.0)
    return float(length * np.cos(angle)), float(length * np.sin(angle)), float(phase)


def tensor_case(rng: np.random.Generator) -> _Case:
    """A plane wave in a medium whose conductivity along the diagonal is ten times that across it."""
    a, c, b = _waves(rng)
    wave = f"cos({a!r}*x + {c!r}*y + {b!r})"
    rate = float(np.array([a, c]) @ np.array(K) @ np.array([a, c]))
    parameters: dict[str, str | list[list[float]]] = {"K": [list(row) for row in K]}
    return _Case("anisotropic", parameters, wave, f"{rate!r}*{wave}", lambda x, y: np.cos(a * x + c * y + b))


def jump_case(rng: np.random.Generator) -> _Case:
    """A wave whose flux is continuous at x = ½, where the conductivity jumps."""
    p, q, b = _waves(rng)
    wave = f"sin({p!r}*(x - 0.5))*cos({q!r}*y + {b!r})"
    share = 1.0 / RIGHT
    return _Case(
        "conduction",
        {"k": f"1 + {RIGHT - 1.0!r}*(x > 0.5)"},
        f"{wave}*({share!r} + {1.0 - share!r}*(x < 0.5))",
        f"{p * p + q * q!r}*{wave}",
        lambda x, y: np.sin(p * (x - 0.5)) * np.cos(q * y + b) * np.where(x < 0.5, 1.0, share),
    )


def line_mesh(n: int, seed: int) -> Mesh:
    """Right triangles of width 1/n, n even, with displaced points; those at x = ½ remain on that line."""
    mesh = make_mesh("right", n, seed)
    moves = np.random.default_rng(seed).uniform(-0.2 / n, 0.2 / n, mesh.points.shape)
    moves[((mesh.points == 0.0) | (mesh.points == 1.0)).any(axis=1)] = 0.0
    moves[np.isclose(mesh.points[:, 0], 0.5), 0] = 0.0
    return Mesh(mesh.points + moves, mesh.cells, mesh.boundary, origin=f"{_LINE} ({n}, seed={seed})")


def measure_error(scheme: str, mesh: Mesh, cases: Sequence[_Case]) -> tuple[int, float]:
    """The number of cells, and the root mean square of the L2 errors of a scheme over the cases."""
    squares, cells = [], 0
    for case in cases:
        solution = steady(
            scheme,
            mesh,
            equation=case.equation,
            parameters=case.parameters,
            source=case.source,
            boundary=Dirichlet(case.wall),
        )
        graph = solution.graph
        off = np.asarray(solution.field) - case.exact(*graph.x.T)
        squares.append(graph.V @ off**2 / graph.V.sum())
        cells = graph.cells
    return cells, float(np.sqrt(np.mean(squares)))


def _rows(problem: str, name: str, meshes: Sequence[Mesh], cases: Sequence[_Case]) -> list[ConductivityRow]:
    errors = {scheme: [measure_error(scheme, mesh, cases) for mesh in meshes] for scheme in ("corrected", *SKEWED)}
    rows = []
    for scheme, measured in errors.items():
        for k, (cells, error) in enumerate(measured):
            order = None
            if k > 0:
                before, last = measured[k - 1]
                order = float(np.log(last / error) / (0.5 * np.log(cells / before)))
            rows.append(ConductivityRow(problem, name, scheme, cells, error, order, error / errors["corrected"][k][1]))
    return rows


def bench_conductivities(sizes: Sequence[int]) -> list[ConductivityRow]:
    """Solve steady problems with a tensor and with a jump, on meshes of width 1/n for every n of `sizes`, n even."""
    rng = np.random.default_rng(_SEED)
    tensor, jump = ([make(rng) for _ in range(PROBLEMS)] for make in (tensor_case, jump_case))
    rows: list[ConductivityRow] = []
    for family in TENSOR_FAMILIES:
        rows += _rows("tensor", family, [make_mesh(family, n, _SEED) for n in sizes], tensor)
    return rows + _rows("jump", _LINE, [line_mesh(n, _SEED) for n in sizes], jump)
