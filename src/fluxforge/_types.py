"""Array aliases with named axes. A leading space marks an axis name (and keeps ruff content)."""

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

if TYPE_CHECKING:
    from jaxtyping import Array

JsonObject: TypeAlias = dict[str, object]
"""An object of a JSON document: names to None, bool, int, float, str, lists and objects of these."""

Precision: TypeAlias = Literal["float32", "float64"]
Points: TypeAlias = Float[np.ndarray, "points dimension"]
Corners: TypeAlias = Int[np.ndarray, "cells corners"]
CellField: TypeAlias = Float[np.ndarray, " cells"]
CellVectors: TypeAlias = Float[np.ndarray, "cells dimension"]
FaceField: TypeAlias = Float[np.ndarray, " faces"]
FaceVectors: TypeAlias = Float[np.ndarray, "faces dimension"]
FaceIndex: TypeAlias = Int[np.ndarray, " faces"]
SlotField: TypeAlias = Float[np.ndarray, "cells slots"]
SlotIndex: TypeAlias = Int[np.ndarray, "cells slots"]
SlotMask: TypeAlias = Bool[np.ndarray, "cells slots"]
if TYPE_CHECKING:
    State: TypeAlias = Float[Array | np.ndarray, " cells"]


def __getattr__(name: str) -> Any:
    """`State` is made at its first use: importing `jaxtyping.Array` imports JAX, which meshes do not need."""
    if name == "State":
        from jaxtyping import Array

        return Float[Array | np.ndarray, " cells"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
