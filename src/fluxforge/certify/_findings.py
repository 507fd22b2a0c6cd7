"""The answers to the questions of a certificate."""

from dataclasses import dataclass

from fluxforge.certify._family import FamilyResult
from fluxforge.certify.conservation import Conservation
from fluxforge.certify.cost import Cost, CostCurve
from fluxforge.certify.linearity import Linearity
from fluxforge.certify.maximum import MaximumPrinciple
from fluxforge.certify.modified import ModifiedEquation
from fluxforge.certify.order import SpaceStudy
from fluxforge.certify.patch import PatchTest
from fluxforge.certify.rate import Rate
from fluxforge.certify.semidiscrete import SemiDiscrete
from fluxforge.certify.stability import Stability
from fluxforge.certify.time_order import TimeStudy
from fluxforge.certify.transient import TransientGrowth
from fluxforge.certify.units import Units


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
