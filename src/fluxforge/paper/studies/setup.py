"""The paper's set-up: the two-cell training set, the 100 meshes, and the neighbourhoods of a cell."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
from msgspec import Struct

from fluxforge import recipe
from fluxforge.data._meshes import meshes
from fluxforge.data._pairs import EQUILATERAL
from fluxforge.data._problem import FixedSource, Problem
from fluxforge.data._source import source
from fluxforge.mesh._boundary import Neumann
from fluxforge.mesh._build import dual
from fluxforge.mesh._generate_gmsh import gmsh_problem
from fluxforge.mesh._mesh import Mesh
from fluxforge.paper.studies._records import Claim, StudyConfig, to_verdict
from fluxforge.paper.studies._setup_meshes import (
    KINDS,
    Ensemble,
    Kind,
    Patch,
    Sample,
    choose_patches,
    choose_samples,
    describe_ensemble,
)
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.scheme._scheme import Hop

NAME = "setup"
SEED = 0
# The geometry of the training set as printed in the paper.
PRINTED = {"V": math.sqrt(3.0), "A": 2.0, "delta": 2.0 / math.sqrt(3.0), "ratio": 1.0}
EXACT = 1e-12
# "Non-constant": the least ratio of the spreads of V, A and δ on an irregular mesh to those on a regular one.
SPREAD_RATIO = 2.0
# "Regular cell shape": the least mean quality of a regular mesh; 1 is equilateral.
REGULAR_SHAPE = 0.9
# "Two areas": the least share of irregular meshes with two areas of small cells. Areas merge if their random points
# are close.
TWO_AREAS = 0.75


class TrainingSet(Struct, frozen=True):
    """All graphs of the training set: their number, edges per graph, and [least, largest] V, A, δ and A/(δ V)."""

    graphs: int
    edges: int
    V: list[float]
    A: list[float]
    delta: list[float]
    ratio: list[float]


class Example(Struct, frozen=True):
    """T and S of one training graph, and T after one step of the first-order scheme."""

    T: list[float]
    S: list[float]
    after: list[float]
    dt: float
    diffusivity: float


class TwoCells(Struct, frozen=True):
    """The two-cell mesh, its dual graph, the training set, and one example of the set."""

    points: list[list[float]]
    cells: list[list[int]]
    centroids: list[list[float]]
    V: list[float]
    A: float
    delta: float
    ratio: list[float]
    training: TrainingSet
    example: Example


class Result(Struct, frozen=True):
    """The result of the study."""

    experiment: str
    preset: str
    two_cells: TwoCells
    ensemble: Ensemble
    samples: dict[str, Sample]
    patches: dict[str, Patch]


@dataclass(frozen=True)
class Config(StudyConfig):
    """Number, sizes and generator of the meshes, by default those of the paper; `changes` have no effect here."""

    meshes: int = 100
    cells: tuple[int, int] = (100, 600)
    engine: Literal["auto", "gmsh", "builtin"] = "auto"


def run(config: Config, folder: Path | None = None, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """Measure the two-cell training set and the meshes, and choose the samples and patches that figures show."""
    tell("two cells", 0, 3)
    with jax.enable_x64(True):
        pair = describe_two_cells()
    tell("meshes", 1, 3)
    spec = recipe.Meshes(meshes=config.meshes, cells=config.cells, engine=config.engine)
    generated = meshes(spec, SEED)
    engine = find_engine(config.engine, warn)
    tell("neighbourhoods", 2, 3)
    result = Result(
        experiment=NAME,
        preset=config.preset,
        two_cells=pair,
        ensemble=describe_ensemble(generated, engine),
        samples=choose_samples(generated, sum(config.cells) / 2),
        patches=choose_patches(generated[1 :: len(KINDS)]),
    )
    tell("neighbourhoods", 3, 3)
    return result


def find_engine(wanted: str, warn: Warn) -> str:
    """The name of the mesh generator for `wanted`; `warn` is called if gmsh, the paper's, is not available."""
    problem = gmsh_problem() if wanted == "auto" else None
    if problem is not None:
        warn(f"the meshes are those of the built-in engine: {problem}")
    return "gmsh" if problem is None and wanted != "builtin" else "the built-in engine"


def judge(result: Result) -> list[Claim]:
    """The claims of the paper about its training set and its meshes."""
    return [_judge_two_cells(result.two_cells), _judge_meshes(result.ensemble)]


def _judge_two_cells(pair: TwoCells) -> Claim:
    """Holds if every graph of the training set has the printed geometry to round-off."""
    training = pair.training
    off = {name: max(abs(end - value) for end in getattr(training, name)) for name, value in PRINTED.items()}
    evidence = (
        f"on all {training.graphs} graphs V = {_format_ends(training.V)}, A = {_format_ends(training.A)}, "
        f"δ = {_format_ends(training.delta)}, A/(δ V) = {_format_ends(training.ratio)}: "
        f"differences of at most {max(off.values()):.0e} from √3, 2, 2/√3, 1"
    )
    text = "V = √3, A = 2, δ = 2/√3, so that A/(δ V) = 1 on the training set"
    return Claim("setup-two-cells", text, to_verdict(max(off.values()) <= EXACT), evidence)


def _format_ends(pair: list[float]) -> str:
    low, high = (f"{value:.9g}" for value in pair)
    return low if low == high else f"{low} to {high}"


def _judge_meshes(ensemble: Ensemble) -> Claim:
    """Holds if spreads, cell shapes and areas are as stated; under a condition if only the areas are not."""
    regular, irregular = (ensemble.by_kind[kind] for kind in KINDS)
    varied = all(
        getattr(irregular.spread, name)[0] >= SPREAD_RATIO * getattr(regular.spread, name)[2]
        for name in ("V", "A", "delta")
    )
    shaped = regular.quality[0] >= REGULAR_SHAPE and not any(int(count) for count in regular.areas)
    two = irregular.areas.get("2", 0)
    apart = two >= TWO_AREAS * irregular.meshes
    evidence = (
        f"{ensemble.meshes} meshes of {ensemble.cells[0]} to {ensemble.cells[1]} cells by {ensemble.engine}; standard "
        f"deviation over mean, least to largest: {_format_spreads(regular)} on regular meshes, "
        f"{_format_spreads(irregular)} on irregular ones; "
        f"mean quality of a regular mesh at least {regular.quality[0]:.2f} (1: equilateral); "
        f"connected areas of cells of at most 1/8 of the largest: {_format_areas(irregular)} of the irregular meshes, "
        f"{_format_areas(regular)} of the regular ones"
    )
    text = (
        "the regular meshes are an unstructured grid with regular cell shape; two random attraction points let two "
        "areas of the irregular ones be meshed with smaller elements: non-constant geometrical features"
    )
    return Claim("setup-meshes", text, to_verdict(varied and shaped and apart, varied and shaped), evidence)


def _format_areas(kind: Kind) -> str:
    return ", ".join(f"{count} on {meshes}" for count, meshes in kind.areas.items())


def _format_spreads(kind: Kind) -> str:
    names = {"V": "V", "A": "A", "delta": "δ"}
    return ", ".join(
        f"{letter} {getattr(kind.spread, k)[0]:.2f} to {getattr(kind.spread, k)[2]:.2f}" for k, letter in names.items()
    )


RECIPE = "generalisation"
CELLS = ((0, 1, 2), (1, 0, 3))


def describe_two_cells() -> TwoCells:
    """The two-cell mesh with its dual graph, the geometry of all training graphs, and the first one with its answer."""
    spec = recipe.load(RECIPE)
    training = source(spec, dtype="float64")
    assert isinstance(training, FixedSource)
    graph = dual(Mesh(EQUILATERAL, np.array(CELLS), origin="two cells"), Neumann())
    return TwoCells(
        points=_round(EQUILATERAL),
        cells=[list(cell) for cell in CELLS],
        centroids=_round(graph.x),
        V=graph.V.tolist(),
        A=float(graph.A[0]),
        delta=float(graph.delta[0]),
        ratio=(graph.A[0] / graph.delta[0] / graph.V).tolist(),
        training=_describe_training(training.problems),
        example=_describe_example(training.problems),
    )


def _describe_training(problems: Problem) -> TrainingSet:
    """Least and largest V, A, δ and A/(δ V) over all graphs of the set, random ones and corner cases."""
    edge = problems.graph.hops[Hop.EDGE]
    V, A, delta = (np.asarray(a) for a in (problems.graph.V, edge.geometry["A"], edge.geometry["delta"]))
    ratio = A / delta / V[..., None]
    quantities = {"V": V, "A": A, "delta": delta, "ratio": ratio}
    ends = {name: [float(values.min()), float(values.max())] for name, values in quantities.items()}
    return TrainingSet(graphs=len(V), edges=int(np.asarray(edge.mask).sum(axis=(1, 2)).max()) // 2, **ends)


def _describe_example(problems: Problem) -> Example:
    """T and S of the first graph, and T after one step of the first-order scheme."""
    T, S, after = (_round(values[0]) for values in (problems.T, problems.S, problems.answer))
    return Example(T, S, after, float(problems.dt[0]), float(problems.parameters["alpha"][0]))


def _round(values: Any) -> list[Any]:
    return np.round(np.asarray(values), 6).tolist()
