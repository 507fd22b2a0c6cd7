"""The certificate: everything that was established of a scheme, as lines for people and as a document for programs."""

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxforge._files import write_document
from fluxforge.verify._claims import ClaimCheck
from fluxforge.verify._evidence import Line
from fluxforge.verify.conservation import Conservation
from fluxforge.verify.cost import Cost, CostCurve
from fluxforge.verify.linearity import Linearity
from fluxforge.verify.maximum import MaximumPrinciple
from fluxforge.verify.modified import ModifiedEquation
from fluxforge.verify.order import SpaceStudy
from fluxforge.verify.patch import PatchTest
from fluxforge.verify.semidiscrete import SemiDiscrete
from fluxforge.verify.stability import Stability
from fluxforge.verify.time_order import TimeStudy

KIND, VERSION = "certificate", 1


@dataclass(frozen=True)
class FamilyResult:
    """What was established on one mesh family. `diffusivity` is K/α."""

    study: SpaceStudy | None
    patch: PatchTest | None
    diffusivity: np.ndarray | None

    @property
    def convergent(self) -> bool:
        """Whether the steady error demonstrably goes to zero."""
        return self.study is not None and self.study.l2.convergent

    @property
    def consistent(self) -> bool:
        """Whether the steady error converges, or linear fields are exact and the diffusivity is α."""
        right = self.diffusivity is not None and bool(np.abs(self.diffusivity - np.eye(2)).max() < 0.05)
        return self.convergent or (self.patch is not None and self.patch.exact(1) and right)


@dataclass(frozen=True)
class Certificate:
    """The results behind the lines; None where a property could not be established (its line says why)."""

    scheme: str
    quick: bool
    lines: tuple[Line, ...]
    claims: tuple[ClaimCheck, ...]
    linearity: Linearity | None
    conservation: Conservation | None
    time: TimeStudy | None
    semidiscrete: SemiDiscrete | None
    space: dict[str, FamilyResult]
    modified: dict[str, ModifiedEquation]
    stability: Stability | None
    maximum: MaximumPrinciple | None
    cost: Cost | None
    curves: tuple[CostCurve, ...]
    mesh: str | None = None

    @property
    def contradicted(self) -> tuple[ClaimCheck, ...]:
        """The claims that measurement contradicts."""
        return tuple(check for check in self.claims if check.holds is False)

    @property
    def verdict(self) -> str:
        """`as claimed`, `contradicted`, or `no claims`: how the scheme stands to what it says of itself."""
        if not self.claims:
            return "no claims"
        return "contradicted" if self.contradicted else "as claimed"

    def to_document(self) -> dict[str, Any]:
        """The certificate as plain JSON values."""
        return {
            "scheme": self.scheme,
            "quick": self.quick,
            "mesh": self.mesh,
            "linear": None if self.linearity is None else self.linearity.linear,
            "hops": None if self.linearity is None else self.linearity.hops,
            "conservative": None if self.conservation is None else self.conservation.holds,
            "time_order": None if self.time is None else self.time.order,
            "generator_ok": None if self.semidiscrete is None else self.semidiscrete.holds,
            "space": {family: _family(result) for family, result in self.space.items()},
            "modified_equation": {name: str(equation) for name, equation in self.modified.items()},
            "stability": _stability(self.stability),
            "maximum_principle_over_fourier": None if self.maximum is None else self.maximum.over_fourier,
            "cost": _cost(self.cost, self.curves),
            "claims": [vars(check) for check in self.claims],
            "lines": [
                {
                    "property": line.property,
                    "verdict": str(line.verdict),
                    "evidence": line.evidence,
                    "method": line.method,
                }
                for line in self.lines
            ],
            "verdict": self.verdict,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `certificate.json`."""
        write_document(path, KIND, VERSION, self.to_document())


def _family(result: FamilyResult) -> dict[str, Any]:
    study, patch = result.study, result.patch
    return {
        "consistent": result.consistent,
        "convergent": result.convergent,
        "order": None if study is None else study.l2.order,
        "order_linf": None if study is None else study.linf.order,
        "cells": [] if study is None else list(study.cells),
        "relative_l2": [] if study is None else [_finite(e) for e in study.l2.errors],
        "relative_linf": [] if study is None else [_finite(e) for e in study.linf.errors],
        "diffusivity": None if result.diffusivity is None else result.diffusivity.tolist(),
        "patch_residual": None if patch is None else {str(k): _finite(v) for k, v in patch.residual.items()},
    }


def _stability(found: Stability | None) -> dict[str, Any]:
    if found is None or (found.interval is None and found.dt_max is None):
        return {"real_interval": None, "unlimited": None, "dt_max_over_fourier": None, "amplification": None}
    unlimited = found.dt_max is not None and math.isinf(found.dt_max)
    return {
        "real_interval": None if found.interval is None or math.isinf(found.interval) else -found.interval,
        "unlimited": unlimited,
        "dt_max_over_fourier": found.over_fourier,
        "amplification": None if found.factor is None else str(found.factor),
        "one_operator": found.one_operator,
        "oscillation_over_fourier": _oscillation(found),
        "stable_at_0.99": found.stable_below,
        "divergent_at_1.01": found.diverges_above,
    }


def _oscillation(found: Stability) -> float | None:
    if found.oscillation is None or not found.rate:
        return None
    return found.oscillation / found.rate / found.fourier


def _cost(found: Cost | None, curves: tuple[CostCurve, ...]) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "stages": found.stages,
        "flops_per_cell": found.flops,
        "bytes_per_cell": found.bytes,
        "memory_per_cell": found.memory,
        "error_against_cost": {
            curve.scheme: {
                "dt_over_fourier": list(curve.dt_over_fourier),
                "error": list(curve.error),
                "bytes_per_cell": list(curve.bytes),
                "bytes_per_cell_at_1e-4": curve.bytes_at(1e-4),
            }
            for curve in curves
        },
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
