"""A two-point flux knows n·K n alone: it is consistent only where K n is parallel to d, from centre to centre."""

from dataclasses import dataclass

import numpy as np

from fluxforge.mesh import DualGraph, Settings
from fluxforge.mesh._parameters import split_tuple
from fluxforge.scheme import Hop, Scheme, symbol

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
            f"a two-point flux is not consistent there, and refining does not mend it"
        )


def alignment(scheme: Scheme, graph: DualGraph, *, parameters: Settings) -> Alignment | None:
    """The angles on the faces between cells; None for a scheme that has no tensor, or reads more than two points."""
    tensor = scheme.equation.diffusion_tensor
    if tensor is None or tensor.name not in parameters or not reads_two_points(scheme):
        return None
    given = parameters[tensor.name]
    K = np.asarray(_rows(given) if isinstance(given, str) else given, float)
    inside = slice(graph.interior)
    along, d = graph.n[inside] @ K.T, graph.d[inside]
    sizes = np.linalg.norm(along, axis=1) * np.linalg.norm(d, axis=1)
    cosine = np.clip(np.einsum("fi,fi->f", along, d) / sizes, -1.0, 1.0)
    angle = np.arccos(cosine)
    if not len(angle):
        return Alignment(0.0, 0.0)
    return Alignment(float((angle > PARALLEL).mean()), float(np.degrees(angle.max())))


def reads_two_points(scheme: Scheme) -> bool:
    """Whether every message passes over a face, and reads n·K n and no other part of K or of the geometry's vectors."""
    tensor = scheme.equation.diffusion_tensor
    messages = [message for stage in scheme.stages for message in stage.messages.values()]
    if tensor is None or any(message.hop is not Hop.EDGE for message in messages):
        return False
    return any(symbol(tensor.normal_name) in message.expression.free_symbols for message in messages) and (
        scheme.dimension is None
    )


def _rows(text: str) -> list[list[str]]:
    return [split_tuple(row) for row in split_tuple(text)]
