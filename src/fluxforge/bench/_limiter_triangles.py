"""Limiters on triangles: a rotating slotted cylinder, and tracers in LeVeque's deformational flow for one period."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluxforge._types import CellField, State
from fluxforge.bench._rows import cell_means, relative_l1, total_variation
from fluxforge.bench._tracers import (
    DEFORMATION_PERIOD,
    ROTATION,
    Profile,
    cosine_bells,
    slotted_cylinder,
    slotted_cylinders,
)
from fluxforge.graph._pad import Size, pad_graph, pad_to_size, padded_size
from fluxforge.graph._padded_graph import PaddedGraph, put
from fluxforge.graph._stages import Formulas, Moment, visit_stages_in_time
from fluxforge.mesh._boundary import Dirichlet
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import square
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameter_values import Curl
from fluxforge.mesh._parameters import reference_step, resolve
from fluxforge.mesh._walls import close_walls
from fluxforge.pde._equation import ADVECTION
from fluxforge.scheme._document import find
from fluxforge.scheme._integrate import integrate
from fluxforge.scheme._scheme import NEXT, Hop, Scheme
from fluxforge.scheme._tableau import EULER
from fluxforge.scheme.limiters import LIMITERS, Limiter
from fluxforge.scheme.transport import bounded_space, unbounded_space

KINDS = ("regular", "irregular")
SIZES = (1_000, 4_000)
# Δt as a share of the Courant step, as in `simulate` by default.
FRACTION = 0.5
SLOPES = ("barth-jespersen-ssp2", "venkatakrishnan-ssp2")
TEXTBOOK = ("van-leer", "superbee", "cfl-superbee")
UNBOUNDED_LIMITERS = ("cfl-superbee", "discovered-ramp")
"""Limiters that are also measured without the bounds by which minima and maxima do not grow."""

# The deformational flow of `_tracers` at t = 0; its factor in time, cos(πt/T), is applied in `_march`.
_SWIRL = Curl("sin(pi*x)**2*sin(pi*y)**2/pi")


class Case(NamedTuple):
    """A tracer in a flow that returns it to its initial state at time `end`; the flow has the factor cos(πt/period)."""

    name: str
    profile: Profile
    flow: Curl
    end: float
    period: float = math.inf


CASES = (
    Case("rotation, slotted cylinder", slotted_cylinder, ROTATION, 1.0),
    Case("deformation, slotted cylinders", slotted_cylinders, _SWIRL, DEFORMATION_PERIOD, DEFORMATION_PERIOD),
    Case("deformation, cosine bells", cosine_bells, _SWIRL, DEFORMATION_PERIOD, DEFORMATION_PERIOD),
)


@dataclass(frozen=True)
class TriangleRow:
    """One scheme on one problem and two meshes of a kind.

    `l1` is Σ V |u − u_exact|/Σ V |u_exact| on the finer mesh, `coarse_l1` that on the coarser one, and `rate` the order
    between them; `total_variation`, relative to the exact one, `minimum` and `maximum` are those on the finer mesh.
    """

    problem: str
    mesh: str
    scheme: str
    cells: int
    l1: float
    total_variation: float
    minimum: float
    maximum: float
    coarse_cells: int
    coarse_l1: float
    rate: float


@dataclass(frozen=True)
class Picture:
    """The last fields of one problem on one mesh, by scheme, the exact one first."""

    problem: str
    mesh: Mesh
    fields: Mapping[str, CellField]


@dataclass(frozen=True)
class TriangleBench:
    """All rows, and the fields on the finer regular mesh."""

    rows: tuple[TriangleRow, ...] = ()
    pictures: tuple[Picture, ...] = ()

    def document(self) -> dict[str, dict[str, dict[str, float]]]:
        """The JSON document: the numbers by problem and kind of mesh, and by scheme."""
        document: dict[str, dict[str, dict[str, float]]] = {}
        for row in self.rows:
            names = ("l1", "total_variation", "minimum", "maximum", "rate", "cells", "coarse_l1", "coarse_cells")
            numbers = {name: getattr(row, name) for name in names}
            document.setdefault(f"{row.problem}, {row.mesh}", {})[row.scheme] = numbers
        return document


def schemes_on_triangles(more: Mapping[str, Limiter] | None = None) -> dict[str, Scheme]:
    """The schemes by the names under which they are shown; the name of a limiter alone is that of its bounded form."""
    discovered = [name for name in LIMITERS if name.startswith("discovered")]
    limiters = {name: LIMITERS[name] for name in (*TEXTBOOK, *discovered)} | dict(more or {})
    named = {name: find(name, ADVECTION) for name in SLOPES}
    spaces = {name: bounded_space(each) for name, each in limiters.items()}
    spaces |= {f"unbounded-{name}": unbounded_space(LIMITERS[name]) for name in UNBOUNDED_LIMITERS}
    return named | {name: integrate(EULER, ADVECTION, space, name=space.name) for name, space in spaces.items()}


def bench_triangles(
    progress: Callable[[str], None],
    schemes: Mapping[str, Scheme],
    *,
    sizes: tuple[int, int] = SIZES,
    kinds: Sequence[str] = KINDS,
    cases: Sequence[Case] = CASES,
) -> TriangleBench:
    """Measure every scheme on every problem, on meshes of every kind and of two sizes.

    The caller has to enable JAX's 64-bit mode.
    """
    # The built-in engine is available on every machine. All meshes of a size are padded alike, so that each scheme is
    # compiled once per size.
    meshes = {kind: [square(cells=cells, kind=kind, seed=1, engine="builtin") for cells in sizes] for kind in kinds}
    fits = [_common_size([meshes[kind][k] for kind in kinds]) for k in range(len(sizes))]
    rows, fields = [], {}
    for name, scheme in schemes.items():
        progress(f"triangles, {name}")
        for case in cases:
            for kind in kinds:
                ran = [run_case(scheme, case, mesh, to) for mesh, to in zip(meshes[kind], fits, strict=True)]
                rows.append(compare_refinements(case, kind, name, *ran))
                fields[case.name, kind, name] = ran[-1].final
    finest = meshes[kinds[0]][-1]
    pictures = [
        Picture(
            case.name,
            finest,
            {"exact": cell_means(finest, case.profile)} | {name: fields[case.name, kinds[0], name] for name in schemes},
        )
        for case in cases
    ]
    return TriangleBench(tuple(rows), tuple(pictures))


class CaseRun(NamedTuple):
    """The last field of a run, and the exact one, which is also the initial field."""

    graph: DualGraph
    exact: CellField
    final: CellField


def run_case(scheme: Scheme, case: Case, mesh: Mesh, to: Size | None = None) -> CaseRun:
    """Run a case with equal Δt of at most `FRACTION` of the Courant step, as `simulate` does.

    `to` is the size to which arrays are padded. Every stage has the flow at its own time. Walls have the least value of
    the tracer, its background.
    """
    exact = cell_means(mesh, case.profile)
    graph = dual(mesh, Dirichlet(float(exact.min())), equation=ADVECTION)
    parameters = {"velocity": case.flow}
    steps = math.ceil(case.end / (FRACTION * reference_step(ADVECTION, graph, parameters)))
    fields = resolve(ADVECTION, graph, parameters)
    closed, read = close_walls(graph, ADVECTION, fields), scheme.symbols_in_messages()
    padded = pad_graph(closed, (Hop.EDGE,), parameters=fields, symbols=read)
    padded = padded if to is None else pad_to_size(padded, to)
    start = np.zeros(len(padded.V))
    start[: graph.cells] = exact
    clock = [put(np.asarray(value, float)) for value in (case.end / steps, case.period)]
    final = np.asarray(_march(scheme, padded, put(start), put(np.asarray(steps)), *clock))
    return CaseRun(graph, exact, final[: graph.cells])


@eqx.filter_jit
def _march(scheme: Scheme, graph: PaddedGraph, u: State, steps: Array, dt: Array, period: Array) -> State:
    """The state after `steps` steps of a scheme in a flow with the factor cos(πt/`period`)."""
    nothing = jnp.zeros_like(u)
    times = [float(stage.time) for stage in scheme.stages if stage.time is not None]

    def advance(n: Array, u: State) -> State:
        def at(c: float) -> Moment:
            factor = jnp.cos(jnp.pi * (n + c) * dt / period)
            return Moment(_scale_flow(graph, factor), nothing, {"dt": dt})

        rounds = ((Formulas(stage), at(c)) for stage, c in zip(scheme.stages, times, strict=True))
        *_, last = visit_stages_in_time(rounds, u)
        return last.outputs[NEXT]

    return jax.lax.fori_loop(0, steps, advance, u)


def _scale_flow(graph: PaddedGraph, factor: Array) -> PaddedGraph:
    return eqx.tree_at(
        lambda tree: tree.hops[str(Hop.EDGE)].geometry["velocity_n"], graph, replace_fn=lambda a_n: factor * a_n
    )


def _common_size(meshes: Sequence[Mesh]) -> Size:
    """The least size that holds the graphs of all meshes."""
    sizes = [padded_size(pad_graph(dual(mesh, Dirichlet(0.0)), (Hop.EDGE,), symbols=())) for mesh in meshes]
    to = sizes[0]
    for each in sizes[1:]:
        to = to.cover(each)
    return to


def compare_refinements(case: Case, kind: str, name: str, coarse: CaseRun, fine: CaseRun) -> TriangleRow:
    """The row of a scheme from its runs on the coarser and the finer mesh of a kind."""
    errors = [relative_l1(ran.graph, ran.final, ran.exact) for ran in (coarse, fine)]
    u, graph = fine.final, fine.graph
    return TriangleRow(
        problem=case.name,
        mesh=kind,
        scheme=name,
        cells=graph.cells,
        l1=errors[1],
        total_variation=total_variation(graph, u) / total_variation(graph, fine.exact),
        minimum=float(u.min()),
        maximum=float(u.max()),
        coarse_cells=coarse.graph.cells,
        coarse_l1=errors[0],
        rate=2 * math.log(errors[0] / errors[1]) / math.log(graph.cells / coarse.graph.cells),
    )
