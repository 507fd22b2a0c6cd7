"""The certificate: everything that was established about a scheme, as lines and as a JSON document."""

import html
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from fluxforge._files import write_document
from fluxforge._types import JsonObject
from fluxforge.certify._equations import EffectiveEquation, ModifiedEquation, Rate, SemiDiscrete, SmoothEquation
from fluxforge.certify._evidence import ClaimCheck, Line
from fluxforge.certify._families import LATTICES, Levels
from fluxforge.certify._properties import (
    LARGEST_STEP,
    Conservation,
    Cost,
    CostCurve,
    Linearity,
    MaximumPrinciple,
    Stability,
    TransientGrowth,
    Units,
    WaveLimit,
)
from fluxforge.certify._studies import PatchTest, SpaceStudy, TimeStudy
from fluxforge.certify.transport import TransportProperties
from fluxforge.mesh._mesh import Mesh
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._limit import limit_kind

KIND, VERSION = "certificate", 1

# The tolerance for the ratio of K to the equation's own where K is exact (lattices), and where it is fitted to steady
# states.
EXACT_DIFFUSION = 1e-6
FITTED_DIFFUSION = 0.02
# The larger tolerance where the errors converge: the diffusivity is fitted on one size of mesh only.
NEAR_DIFFUSION = 0.05


def certificate_html(scheme: str, verdict: str, rows: Iterable[tuple[str, str, str]], summary: str = "") -> str:
    """HTML of a certificate for notebooks: the verdict on its claims, and a table of verdict, property and evidence."""
    lines = "".join(f"<tr>{''.join(f'<td>{html.escape(text)}</td>' for text in row)}</tr>" for row in rows)
    head = f"<p><b>{html.escape(scheme)}</b>: {verdict}. {html.escape(summary)}</p>"
    return f"{head}<table><tr><th>verdict</th><th>property</th><th>evidence</th></tr>{lines}</table>"


@dataclass(frozen=True)
class FamilyResult:
    """The results on one mesh family: a study per manufactured problem, a patch test, and the equation that is solved.

    `diffusion` is the ratio of K to the equation's own, as a matrix; `effective` the equation of smooth fields on a
    lattice, for equations other than heat.
    """

    studies: tuple[SpaceStudy, ...] = ()
    patch: PatchTest | None = None
    diffusion: np.ndarray | None = None
    only_diffuses: bool = True
    effective: EffectiveEquation | None = None

    @property
    def study(self) -> SpaceStudy | None:
        """The worst study: of those without an order, that of the largest last error; if none, that of lowest order."""
        without = [study for study in self.studies if not study.l2.convergent]
        if without:
            return max(without, key=lambda study: study.l2.errors[-1])
        return min(self.studies, key=lambda study: math.inf if study.l2.order is None else study.l2.order, default=None)

    @property
    def convergent(self) -> bool:
        """Whether the steady error of every problem demonstrably goes to zero."""
        return self.study is not None and self.study.l2.convergent

    @property
    def consistent(self) -> bool:
        """Whether steady errors go to zero, or linear fields are exact, and K is the equation's within a tolerance."""
        if self.effective is not None and not self.effective.holds:
            return False
        if not self.only_diffuses:
            return self.convergent
        if self.diffusion is None:
            return False
        off = float(np.abs(self.diffusion - np.eye(len(self.diffusion))).max())
        fitted = self.study is not None and self.study.family not in LATTICES
        exact = self.patch is not None and self.patch.exact(1)
        limit = FITTED_DIFFUSION if fitted else EXACT_DIFFUSION
        return (self.convergent and off <= NEAR_DIFFUSION) or (exact and off <= limit)

    @property
    def fails(self) -> bool:
        """Whether the errors demonstrably do not go to zero: they have stalled on one problem at least."""
        return any(study.l2.stalled for study in self.studies)


@dataclass(frozen=True, eq=False)
class Certificate:
    """The results behind the lines; None where a property could not be established (its line says why).

    `summary` is one sentence on the scheme, from `summarise`. `rate` is measured for equations that are not linear.
    """

    scheme: str
    quick: bool
    lines: tuple[Line, ...] = ()
    claims: tuple[ClaimCheck, ...] = ()
    linearity: Linearity | None = None
    conservation: Conservation | None = None
    time: TimeStudy | None = None
    semidiscrete: SemiDiscrete | None = None
    space: dict[str, FamilyResult] = field(default_factory=dict)
    modified: dict[str, ModifiedEquation] = field(default_factory=dict)
    stability: Stability | None = None
    maximum: MaximumPrinciple | None = None
    cost: Cost | None = None
    curves: tuple[CostCurve, ...] = ()
    mesh: str | None = None
    units: Units | None = None
    transient: TransientGrowth | None = None
    meshes: tuple[SpaceStudy, ...] = ()
    rate: Rate | None = None
    patch: PatchTest | None = None
    summary: str = ""
    transport: TransportProperties | None = None

    def __repr__(self) -> str:
        """The scheme, the verdict on its claims, and the sentence that sums it up."""
        return f"<Certificate of {self.scheme!r}: {self.verdict}. {self.summary}>"

    def _repr_html_(self) -> str:
        """The same for notebooks, with the lines as a table."""
        rows = ((line.verdict, line.property, line.evidence) for line in self.lines)
        return certificate_html(self.scheme, self.verdict, rows, self.summary)

    @property
    def contradicted(self) -> tuple[ClaimCheck, ...]:
        """The claims that a measurement contradicts."""
        return tuple(check for check in self.claims if check.holds is False)

    @property
    def not_established(self) -> tuple[ClaimCheck, ...]:
        """The claims that were to be measured, but are neither confirmed nor contradicted."""
        return tuple(check for check in self.claims if check.asked and check.holds is None)

    @property
    def verdict(self) -> str:
        """`contradicted`, `not established`, `as claimed`, or `no claims` if none is made or all were left out.

        One contradicted claim decides, otherwise one that is not established.
        """
        if not any(check.asked for check in self.claims):
            return "no claims"
        if self.contradicted:
            return "contradicted"
        return "not established" if self.not_established else "as claimed"

    def to_document(self) -> JsonObject:
        """The certificate as plain JSON values, null for what is not established.

        In `stability`, numbers are also null if there is no limit: `dt_limit_kind` and `real_interval_kind` say whether
        it is `finite`, `unlimited` or `unknown`. `maximum_principle_over_fourier` is null if the principle holds at
        every step tried, up to `maximum_principle_tried_to` Fourier steps, and 0 if T' is not an average of T and
        boundary values at any step.
        """
        return {
            "scheme": self.scheme,
            "quick": self.quick,
            "mesh": self.mesh,
            "linear": None if self.linearity is None else self.linearity.linear,
            "hops": None if self.linearity is None else self.linearity.hops,
            "conservative": None if self.conservation is None else self.conservation.holds,
            "time_order": None if self.time is None else self.time.order,
            "time_order_exact": None if self.time is None else self.time.exact_order,
            "units": _units_document(self.units),
            "generator_ok": None if self.semidiscrete is None else self.semidiscrete.holds,
            "space": {family: _family_document(result) for family, result in self.space.items()},
            "modified_equation": {name: str(equation) for name, equation in self.modified.items()},
            "stability": _stability_document(self.stability),
            "transient_growth": _growth_document(self.transient),
            "meshes": [_study_document(study) for study in self.meshes],
            "maximum_principle_over_fourier": (
                None if self.maximum is None else self.maximum.over_fourier if self.maximum.averages else 0.0
            ),
            "maximum_principle_tried_to": None if self.maximum is None else LARGEST_STEP,
            "cost": _cost_document(self.cost, self.curves),
            "claims": [vars(check) for check in self.claims],
            "lines": [{**vars(line), "verdict": str(line.verdict)} for line in self.lines],
            "verdict": self.verdict,
            **({} if self.transport is None else {"transport": self.transport.to_document()}),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `certificate.json`."""
        write_document(path, KIND, VERSION, self.to_document())


def _family_document(result: FamilyResult) -> JsonObject:
    study, patch = result.study, result.patch
    effective = {} if result.effective is None else {"effective_equation": _effective_document(result.effective)}
    return {
        **effective,
        "consistent": result.consistent,
        "convergent": result.convergent,
        **_errors_document(study),
        "diffusivity": None if result.diffusion is None else result.diffusion.tolist(),
        "patch_residual": None if patch is None else {str(k): _finite_or_none(v) for k, v in patch.residual.items()},
        "problems": [_study_document(one) for one in result.studies],
    }


def _effective_document(equation: EffectiveEquation) -> JsonObject:
    """Rate, drift and K of smooth fields (`found`), and of the scheme's equation (`own`)."""

    def plain(one: SmoothEquation) -> JsonObject:
        return {"rate": _finite_or_none(one.rate), "drift": one.drift.tolist(), "K": one.K.tolist()}

    return {"holds": equation.holds, "found": plain(equation.found), "own": plain(equation.own)}


def _errors_document(study: SpaceStudy | None) -> JsonObject:
    if study is None:
        return {"order": None, "order_linf": None, "cells": [], "relative_l2": [], "relative_linf": []}
    return {
        "order": study.l2.order,
        "order_linf": study.linf.order,
        "cells": list(study.cells),
        "relative_l2": [_finite_or_none(e) for e in study.l2.errors],
        "relative_linf": [_finite_or_none(e) for e in study.linf.errors],
    }


def _study_document(study: SpaceStudy) -> JsonObject:
    return {
        "problem": study.problem,
        "convergent": study.l2.convergent,
        **_errors_document(study),
        "rates_l2": [_finite_or_none(rate) for rate in study.l2.rates],
    }


def _units_document(units: Units | None) -> JsonObject | None:
    if units is None:
        return None
    parts = {name: _finite_or_none(getattr(units, name)) for name in ("lengths", "times", "temperatures", "shift")}
    return {"unchanged": units.holds, **parts, "from_the_algebra": list(units.algebra)}


def _growth_document(growth: TransientGrowth | None) -> JsonObject | None:
    if growth is None:
        return None
    return {
        "dt_over_fourier": growth.over_fourier,
        "one_step": _finite_or_none(growth.one_step),
        "largest": _finite_or_none(growth.largest),
        "after_steps": growth.steps,
        "normal": growth.normal,
    }


def _stability_document(stability: Stability | None) -> JsonObject:
    if stability is None or (stability.interval is None and stability.dt_max is None):
        return {
            **dict.fromkeys(("real_interval", "unlimited", "dt_max_over_fourier", "amplification")),
            **dict.fromkeys(("dt_limit_kind", "real_interval_kind"), limit_kind(None)),
        }
    # Without R(z) only some steps were tried; that all of them were stable does not make the step unlimited.
    limit = None if not stability.bound and stability.dt_max == math.inf else stability.dt_max
    unlimited = None if limit is None else math.isinf(limit)
    waves = {} if stability.waves is None else {"waves": _waves_document(stability.waves)}
    return {
        **waves,
        "real_interval": None if stability.interval is None or math.isinf(stability.interval) else -stability.interval,
        "unlimited": unlimited,
        "dt_max_over_fourier": stability.over_fourier,
        "dt_limit_kind": limit_kind(limit),
        "real_interval_kind": limit_kind(stability.interval),
        "amplification": None if stability.factor is None else str(stability.factor),
        "one_operator": stability.one_operator,
        "bound": stability.bound,
        "oscillation_over_fourier": stability.oscillation_over_fourier,
        "stable_at_0.99": stability.stable_below,
        "divergent_at_1.01": stability.diverges_above,
    }


def _waves_document(waves: WaveLimit) -> JsonObject:
    """The limit of the step for plane waves on an infinite lattice; null if there is none."""
    return {
        "lattice": waves.lattice,
        "dt_max_over_reference": _finite_or_none(waves.over_reference),
        "imaginary_eigenvalues": waves.on_axis,
        "imaginary_interval": _finite_or_none(waves.imaginary),
    }


def _cost_document(cost: Cost | None, curves: tuple[CostCurve, ...]) -> JsonObject | None:
    if cost is None:
        return None
    return {
        "stages": cost.stages,
        "flops_per_cell": cost.flops,
        "bytes_per_cell": cost.bytes,
        "memory_per_cell": cost.memory,
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


def _finite_or_none(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True)
class Request:
    """The request for a certificate: scheme, meshes or families, exact solution, and whether it is quick."""

    scheme: Scheme
    mesh: Mesh | None
    families: tuple[Levels, ...]
    meshes: tuple[Mesh, ...]
    exact: str | None
    quick: bool

    @property
    def dimension(self) -> int:
        """3 if a requested family is in space, or if the formulas are written for three coordinates; otherwise 2."""
        return 3 if self.scheme.dimension == 3 or any(one.dimension == 3 for one in self.families) else 2
