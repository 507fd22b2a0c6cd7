"""Consistency on one mesh: patch tests with polynomials, and the angle between K n and d for tensors."""

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from fluxforge.certify._evidence import Line, Verdict, verdict_of
from fluxforge.certify._problems import Problem, as_graph, diffusion_rate, with_walls
from fluxforge.certify._studies import PatchTest
from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.mesh._dual import DualGraph, check_graph
from fluxforge.mesh._face_values import face_conormals
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import Settings
from fluxforge.pde._equation import HEAT
from fluxforge.pde._words import Words
from fluxforge.scheme._scheme import Hop, Scheme, check_scheme
from fluxforge.stepping._assemble import generator


def polynomials(dimension: int) -> dict[int, tuple[str, ...]]:
    """Monomials of the coordinates, by degree up to 2."""
    axes = COORDINATES[:dimension]
    return {0: ("1",), 1: axes, 2: tuple("*".join(pair) for pair in combinations_with_replacement(axes, 2))}


def run_patch_test(
    scheme: Scheme, mesh: Mesh | DualGraph, *, parameters: Settings | None = None, walls: str = "held"
) -> PatchTest:
    """The residuals of polynomials given at the centroids and, by boundary conditions, at the centres of walls.

    `walls` is "held" or "mixed", see `PatchTest`.
    """
    residual: dict[int, float] = {}
    worst = (-1.0, 0, "x")
    held = as_graph(mesh)
    dimension = held.dimension
    for degree, family in polynomials(dimension).items():
        residual[degree] = 0.0
        for text in family:
            problem = Problem(text, text, equation=scheme.equation, parameters=parameters, mixed=walls == "mixed")
            graph = problem.graph(held)
            system = generator(scheme, graph, parameters=parameters)
            p = problem.solution(graph)
            size = diffusion_rate(scheme.equation, parameters, dimension)
            # h² from the mean volume.
            squared = graph.V.mean() if dimension == 2 else graph.V.mean() ** (2 / dimension)
            scale = squared / (size * np.abs(p).max())
            errors = np.abs(system.M @ p + system.b + system.N @ problem.source(graph)) * scale
            # max(0, NaN) is 0 in Python, which would count as exact.
            errors = np.where(np.isnan(errors), np.inf, errors)
            residual[degree] = max(residual[degree], float(errors.max()))
            if degree == 1 and errors.max() > worst[0]:
                worst = (float(errors.max()), int(errors.argmax()), text)
    return PatchTest(residual, worst[1], worst[2], walls)


def run_patch_tests(scheme: Scheme, mesh: Mesh | DualGraph) -> tuple[PatchTest, PatchTest]:
    """The patch tests with held and with mixed walls, for the example parameters of the equation."""
    graph = as_graph(mesh)
    parameters = scheme.equation.example(graph.dimension)
    held, mixed = (run_patch_test(scheme, graph, parameters=parameters, walls=walls) for walls in ("held", "mixed"))
    return held, mixed


def choose_worse(one: PatchTest, other: PatchTest) -> PatchTest:
    """The patch test with the larger residual of degree one."""
    return one if one.residual[1] >= other.residual[1] else other


def linear_field_defect(scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None) -> float:
    """The defect of linear fields on a graph with Dirichlet walls: |Σ fluxes| over Σ|fluxes| in the worst cell.

    0 is exact. The fluxes are the terms G_PN (p_N − p_P) of the generator's row and the wall's share.
    """
    check_scheme(scheme), check_graph(graph)
    walls = graph.centre[graph.interior :]
    return max(
        _defect(scheme, with_walls(graph, value=walls[:, k]), graph.x[:, k], parameters) for k in range(graph.dimension)
    )


def _defect(scheme: Scheme, graph: DualGraph, p: np.ndarray, parameters: Settings | None) -> float:
    system = generator(scheme, graph, parameters=parameters)
    rows = system.M.tocoo()
    terms = rows.data * (p[rows.col] - p[rows.row])
    inside = np.bincount(rows.row, terms, minlength=graph.cells)
    sizes = np.bincount(rows.row, np.abs(terms), minlength=graph.cells)
    # The contribution of walls, r_P + (Σ_N G_PN) p_P; zero for a cell without walls.
    outside = system.b + np.asarray(system.M.sum(axis=1)).ravel() * p
    return float((np.abs(inside + outside) / np.maximum(sizes + np.abs(outside), 1e-300)).max())


def patch_line(tests: tuple[PatchTest, ...], where: str) -> Line:
    """The line on whether linear fields are exact on one mesh, with held and with mixed walls."""
    exact = all(test.exact(1) for test in tests)
    evidence = "; ".join(f"{test.walls} walls: {test.residual[1]:.1e}" for test in tests)
    evidence = f"scaled residuals of degree 1, {evidence}; {where}"
    worst = max(tests, key=lambda test: test.residual[1])
    if not worst.residual[1] <= 1e-10:
        evidence += f"; the largest residual is that of the field {worst.polynomial} at cell {worst.cell}"
    elif not exact:
        evidence += "; constants are not preserved"
    return Line("linear fields are exact", verdict_of(exact), evidence, "patch tests with boundary data")


def residuals_line(tests: tuple[PatchTest, ...], where: str, words: Words = HEAT.words) -> Line:
    """The line on the residuals of every degree."""
    parts = (
        f"{test.walls} walls: " + ", ".join(f"degree {k}: {value:.1e}" for k, value in test.residual.items())
        for test in tests
    )
    method = "max |G p + r + s S_p|·h²/(K max|p|) over cells and polynomials p, S_p their source"
    if words == HEAT.words:
        K = words.diffusion
        method = f"max |G p + r − {K}∇²p|·h²/({K} max|p|) over cells and polynomials p"
    return Line("patch residuals", Verdict.MEASURED, "; ".join(parts) + f"; {where}", method)


# Angles below this are round-off of a cosine near 1: arccos loses half the digits.
PARALLEL = 1e-6


@dataclass(frozen=True)
class Alignment:
    """`share` of the faces on which K n is not parallel to d, and the largest `angle` between them, in degrees."""

    share: float
    angle: float

    @property
    def holds(self) -> bool:
        """Whether K n is parallel to d on every face."""
        return self.share == 0

    def __str__(self) -> str:
        if self.holds:
            return "K n is parallel to d on every face"
        return (
            f"K n is not parallel to d on {self.share:.0%} of the faces, by up to {self.angle:.1f}°: "
            f"a two-point flux is not consistent there, and refining the mesh does not help"
        )


def alignment(scheme: Scheme, graph: DualGraph, *, parameters: Settings) -> Alignment | None:
    """The angles of K n to d on faces between cells; None for a scheme without a tensor, or that reads more points."""
    tensor = scheme.equation.diffusion_tensor
    if tensor is None or tensor.name not in parameters or not reads_two_points(scheme):
        return None
    inside = slice(graph.interior)
    conormal = face_conormals(tensor, parameters[tensor.name], graph, f"parameter {tensor.name!r}", time=0.0)
    along, d = conormal[inside], graph.d[inside]
    sizes = np.linalg.norm(along, axis=1) * np.linalg.norm(d, axis=1)
    cosine = np.clip(np.einsum("fi,fi->f", along, d) / sizes, -1.0, 1.0)
    angle = np.arccos(cosine)
    if not len(angle):
        return Alignment(0.0, 0.0)
    return Alignment(float((angle > PARALLEL).mean()), float(np.degrees(angle.max())))


def reads_two_points(scheme: Scheme) -> bool:
    """Whether all messages are of hop `edge`, and read n·K n but no component of K n or of the geometry's vectors."""
    tensor = scheme.equation.diffusion_tensor
    messages = scheme.messages()
    if tensor is None or scheme.dimension is not None or any(message.hop is not Hop.EDGE for message in messages):
        return False
    return any(symbol(tensor.normal_name) in message.expression.free_symbols for message in messages)


def alignment_line(angles: Alignment, where: str) -> Line:
    """The line on whether the two-point flux of a tensor can be consistent on a mesh."""
    method = "angles on faces between cells"
    return Line("the two-point flux suits the tensor", verdict_of(angles.holds), f"{angles}; {where}", method)
