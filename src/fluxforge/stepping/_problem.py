"""What a run was asked, as one record: enough to run it again."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fluxforge._types import Precision
from fluxforge.mesh._boundary import Conditions, Value
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import Settings
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._build import Solver
from fluxforge.stepping._trained import TrainedNetwork


@dataclass(frozen=True)
class Problem:
    """The arguments of `simulate`, read but not yet evaluated on the mesh.

    A run that continues another begins with step `first_step` of the steps that are counted from `start_time`.
    """

    scheme: Scheme | TrainedNetwork
    mesh: Mesh
    parameters: Settings
    initial: Value | np.ndarray = 0.0
    source: Value | np.ndarray = 0.0
    boundary: Conditions = None
    dt: float | Literal["auto"] | None = None
    dt_fraction: float = 0.5
    steps: int | None = None
    end_time: float | None = None
    start_time: float = 0.0
    save_every: float | None = None
    force: bool = False
    dtype: Precision = "float64"
    solver: Solver = "auto"
    first_step: int = 0

    @property
    def begin(self) -> float:
        """The time of the initial field."""
        return self.start_time if not self.first_step else self.start_time + self.first_step * float(self.dt or 0.0)
