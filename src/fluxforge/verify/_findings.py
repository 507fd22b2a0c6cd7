"""The answers to the questions of a certificate."""

from dataclasses import dataclass

from fluxforge.verify._family import FamilyResult
from fluxforge.verify.conservation import Conservation
from fluxforge.verify.cost import Cost, CostCurve
from fluxforge.verify.linearity import Linearity
from fluxforge.verify.maximum import MaximumPrinciple
from fluxforge.verify.modified import ModifiedEquation
from fluxforge.verify.order import SpaceStudy
from fluxforge.verify.patch import PatchTest
from fluxforge.verify.rate import Rate
from fluxforge.verify.semidiscrete import SemiDiscrete
from fluxforge.verify.stability import Stability
from fluxforge.verify.time_order import TimeStudy
from fluxforge.verify.transient import TransientGrowth
from fluxforge.verify.units import Units


@dataclass(frozen=True)
class Findings:
    """The answers; None where there is none."""

    linearity: Linearity | None
    conservation: Conservation | None
    units: Units | None
    patch: PatchTest | None
    semidiscrete: SemiDiscrete | None
    time: TimeStudy | None
    stability: Stability | None
    transient: TransientGrowth | None
    maximum: MaximumPrinciple | None
    modified: dict[str, ModifiedEquation]
    space: dict[str, FamilyResult]
    meshes: tuple[SpaceStudy, ...]
    curves: tuple[CostCurve, ...]
    cost: Cost | None
    rate: Rate | None
