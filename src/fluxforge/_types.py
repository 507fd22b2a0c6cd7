"""Array aliases with named axes. A leading space marks an axis name (and keeps ruff content)."""

from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Array, Bool, Float, Int

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
State: TypeAlias = Float[Array | np.ndarray, " cells"]
