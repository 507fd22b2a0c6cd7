"""What a trained network is asked."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from fluxforge.recipe._numbers import Cells, Positive


class Evaluation(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One step and a rollout on meshes the network has not seen, against the first-order scheme.

    - `fourier`: Δt on each mesh, in units of its Fourier step.
    """

    meshes: Annotated[int, Meta(ge=0, le=100_000)] = 100
    cells: Cells = 300
    engine: Literal["auto", "gmsh", "builtin"] = "auto"
    rollout: Annotated[int, Meta(ge=1, le=1_000_000)] = 50
    fourier: Positive = 0.5
