"""Values of vector and tensor parameters on faces: a·n, stream functions, K n, and the discrete divergence."""

import re
from collections.abc import Callable

import numpy as np

from fluxforge._types import CellField, FaceField, FaceVectors, SlotField
from fluxforge.errors import ExpressionError, InputError
from fluxforge.expression._parse import field, parse
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import COORDINATES, TIME, symbol
from fluxforge.mesh._dual import DualGraph, check_graph, normal_part, tangential_length
from fluxforge.mesh._parameter_values import (
    Curl,
    Setting,
    Sites,
    cell_sites,
    constant_tensor,
    face_sites,
    scalars_at,
    tensors_at,
    vectors_at,
)
from fluxforge.pde._equation import differentiate
from fluxforge.pde._parameter import Parameter, Where

_CURL = re.compile(r"\s*curl\s*\((.*)\)\s*", re.DOTALL)


def face_velocities(
    setting: Setting, graph: DualGraph, what: str, time: float | None
) -> tuple[FaceField, Callable[[], FaceField] | None]:
    """a·n of every face, n pointing away from its owner, and a function that returns |a − (a·n) n|, None if unknown.

    `setting` is a vector, a stream function, or an array of a·n per face. An array, and a stream function that is not a
    formula, give a·n only.
    """
    if isinstance(setting, str) and (inner := _CURL.fullmatch(setting)) is not None:
        setting = Curl(inner[1])
    if isinstance(setting, Curl):
        return _curl(setting, graph, what, time)
    if isinstance(setting, np.ndarray) and setting.shape == graph.A.shape:
        return scalars_at(setting, face_sites(graph, time), what), None
    a: FaceVectors = vectors_at(setting, face_sites(graph, time), what)
    return normal_part(a, graph.n), lambda: tangential_length(a, graph.n)


def _curl(
    stream_function: Curl, graph: DualGraph, what: str, time: float | None
) -> tuple[FaceField, Callable[[], FaceField] | None]:
    """A a·n = ψ(end) − ψ(start), where the face leads from start to end with its owner on the left."""
    if graph.dimension != 2:
        raise InputError(
            f"{what}: a stream function needs a mesh of 2 dimensions, and this one has {graph.dimension}: give "
            "the components of the vector"
        )
    # n = (along_y, −along_x)/A.
    along = graph.A[:, None] * np.stack([-graph.n[:, 1], graph.n[:, 0]], axis=1)
    start, end = (
        scalars_at(
            stream_function.stream,
            Sites(graph.centre + side * along / 2, "face", time),
            f"{what}, its stream function,",
        )
        for side in (-1, 1)
    )

    normal = (end - start) / graph.A
    if not isinstance(stream_function.stream, str):
        return normal, None
    psi = stream_function.stream
    # a × n = −∇ψ·n.
    return normal, lambda: np.abs(normal_part(_gradient(psi, graph, what, time or 0.0), graph.n))


def _gradient(text: str, graph: DualGraph, what: str, time: float) -> FaceVectors:
    names = (*COORDINATES[:2], TIME)
    try:
        psi = parse(text, names)
        slopes = [field(to_text(differentiate(psi, symbol(axis))), names) for axis in names[:2]]
        return np.stack([slope(*graph.centre.T, time) for slope in slopes], axis=1)
    except ExpressionError as error:
        raise ExpressionError(f"{what}, its stream function: {error}") from error


def face_conormals(
    p: Parameter, setting: Setting, graph: DualGraph, what: str, time: float | None = None
) -> FaceVectors:
    """K n of every face.

    For K given per cell, the two half cells act in series: if the flux and the slope of u along the face are
    continuous, n·K n is the harmonic mean λ of the two cells' values, and the tangential part is λ times the mean of
    the two cells' tangential parts, each divided by its n·K n. At a wall K is that of the owner.
    """
    n = graph.n
    if p.where is Where.CONSTANT:
        conormal: FaceVectors = n @ constant_tensor(setting, graph.dimension, what, time)  # K is symmetric.
        return conormal
    if p.where is Where.FACE:
        return np.einsum("fij,fj->fi", tensors_at(setting, face_sites(graph, time), what), n)
    K = tensors_at(setting, cell_sites(graph, time), what)
    here = np.einsum("fij,fj->fi", K[graph.owner], n)
    there = here.copy()
    inside = slice(graph.interior)
    there[inside] = np.einsum("fij,fj->fi", K[graph.neighbour[inside]], n[inside])
    one, other = normal_part(here, n), normal_part(there, n)
    mean: FaceField = 2 * one * other / (one + other)
    return mean[:, None] * (here / one[:, None] + there / other[:, None]) / 2


def divergence(graph: DualGraph, a_n: np.ndarray) -> CellField:
    """Σ A a·n / V of every cell: the rate at which transport changes a field of 1, up to its sign.

    `a_n` is a·n in the slots of each cell, as in `resolve(…).slots`. Raises InputError for an array of another shape.
    """
    total: CellField = _outflow(graph, a_n).sum(axis=1) / graph.V
    return total


def relative_divergence(graph: DualGraph, a_n: np.ndarray) -> float:
    """The largest |Σ A a·n| of a cell relative to the largest Σ A |a·n|; 0 where nothing flows."""
    out = _outflow(graph, a_n)
    size = float(np.abs(out).sum(axis=1).max(initial=0.0))
    return float(np.abs(out.sum(axis=1)).max(initial=0.0)) / size if size else 0.0


def _outflow(graph: DualGraph, a_n: np.ndarray) -> SlotField:
    """A a·n in every slot, 0 in unused slots."""
    shape = check_graph(graph).slot_mask.shape
    if np.shape(a_n) != shape:
        raise InputError(f"a_n should be an array of shape {shape}, one row per cell; got shape {np.shape(a_n)}")
    return np.where(graph.slot_mask, graph.A[graph.slot_face] * a_n, 0.0)
