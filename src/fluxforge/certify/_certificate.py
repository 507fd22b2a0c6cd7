"""The certificate: everything that was established about a scheme, as lines and as a JSON document."""

import html
import math
import os
from dataclasses import dataclass, field

import numpy as np

from fluxforge._files import write_document
from fluxforge._types import JsonObject
from fluxforge.certify._equations import EffectiveEquation, ModifiedEquation, Rate, SemiDiscrete, SmoothEquation
from fluxforge.certify._evidence import ClaimCheck, Line
from fluxforge.certify._families import LATTICES, Levels
from fluxforge.certify._properties import (
    LARGEST,
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

# How far K over the equation's own may be from 1 where it is exact (lattices), and where it is fitted to steady states.
EXACT_DIFFUSION = 1e-6
FITTED_DIFFUSION = 0.02
# The larger tolerance where the errors converge: the diffusivity is fitted on one size of mesh only.
NEAR_DIFFUSION = 0.05


@dataclass(frozen=True)
class FamilyResult:
    """The results on one mesh family.

    `diffusion` is K over the equation's own; `effective` the equation of smooth fields on a lattice, of other equations
    than heat.

    `studies` has a study per manufactured problem, and `study` is the worst of them: without an order if one has none,
    otherwise of the lowest order.
    """

    study: SpaceStudy | None
    patch: PatchTest | None
    diffusion: np.ndarray | None
    studies: tuple[SpaceStudy, ...] = ()
    only_diffuses: bool = True
    effective: EffectiveEquation | None = None

    @property
    def convergent(self) -> bool:
        """Whether the steady error of every problem demonstrably goes to zero."""
        return self.study is not None and self.study.l2.convergent

    @property
    def consistent(self) -> bool:
        """Whether the steady errors go to zero, or linear fields are exact; and the diffusivity is the equation's."""
        if self.effective is not None and not self.effective.holds:
            return False
        if not self.only_diffuses:
            return self.convergent
        if self.diffusion is None:
            return False
        off = float(np.abs(self.diffusion - np.eye(len(self.diffusion))).max())
        fitted = self.study is not None and self.study.family not in LATTICES
        exact = self.patch is not None and self.patch.exact(1)
        return (self.convergent and off <= NEAR_DIFFUSION) or (
            exact and off <= (FITTED_DIFFUSION if fitted else EXACT_DIFFUSION)
        )

    @property
    def fails(self) -> bool:
        """Whether the errors demonstrably do not go to zero: they have stalled on one problem at least."""
        return any(study.l2.stalled for study in self.studies or ((self.study,) if self.study is not None else ()))


@dataclass(frozen=True)
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
        rows = "".join(
            f"<tr><td>{line.verdict}</td><td>{html.escape(line.property)}</td><td>{html.escape(line.evidence)}</td></tr>"
            for line in self.lines
        )
        head = f"<p><b>{html.escape(self.scheme)}</b>: {self.verdict}. {html.escape(self.summary)}</p>"
        return f"{head}<table><tr><th>verdict</th><th>property</th><th>evidence</th></tr>{rows}</table>"

    @property
    def contradicted(self) -> tuple[ClaimCheck, ...]:
        """The claims that measurement contradicts."""
        return tuple(check for check in self.claims if check.holds is False)

    @property
    def not_established(self) -> tuple[ClaimCheck, ...]:
        """The claims that were asked for and that measurement neither confirms nor contradicts."""
        return tuple(check for check in self.claims if check.asked and check.holds is None)

    @property
    def verdict(self) -> str:
        """Whether measurement confirms the claims of the scheme.

        `contradicted`, `not established`, `as claimed`, or `no claims` where none is made or all were left out.
        """
        if not any(check.asked for check in self.claims):
            return "no claims"
        if self.contradicted:
            return "contradicted"
        return "not established" if self.not_established else "as claimed"

    def to_document(self) -> JsonObject:
        """The certificate as plain JSON values, null for what is not established.

        Of `stability`, the numbers are null also where there is no limit: `dt_limit_kind` and `real_interval_kind` say
        which, `finite`, `unlimited` or `unknown`. A maximum principle that holds at every step tried has no number:
        then `maximum_principle_tried_to`, in Fourier steps, has one. It is 0 where T' is no average of T and of
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
            "units": _units(self.units),
            "generator_ok": None if self.semidiscrete is None else self.semidiscrete.holds,
            "space": {family: _family(result) for family, result in self.space.items()},
            "modified_equation": {name: str(equation) for name, equation in self.modified.items()},
            "stability": _stability(self.stability),
            "transient_growth": _transient(self.transient),
            "meshes": [_study(study) for study in self.meshes],
            "maximum_principle_over_fourier": (
                None if self.maximum is None else self.maximum.over_fourier if self.maximum.averages else 0.0
            ),
            "maximum_principle_tried_to": None if self.maximum is None else LARGEST,
            "cost": _cost(self.cost, self.curves),
            "claims": [vars(check) for check in self.claims],
            "lines": [{**vars(line), "verdict": str(line.verdict)} for line in self.lines],
            "verdict": self.verdict,
            **({} if self.transport is None else {"transport": self.transport.to_document()}),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `certificate.json`."""
        write_document(path, KIND, VERSION, self.to_document())


def _family(result: FamilyResult) -> JsonObject:
    study, patch = result.study, result.patch
    effective = {} if result.effective is None else {"effective_equation": _effective(result.effective)}
    return {
        **effective,
        "consistent": result.consistent,
        "convergent": result.convergent,
        **_errors(study),
        "diffusivity": None if result.diffusion is None else result.diffusion.tolist(),
        "patch_residual": None if patch is None else {str(k): _finite(v) for k, v in patch.residual.items()},
        "problems": [_study(one) for one in result.studies],
    }


def _effective(found: EffectiveEquation) -> JsonObject:
    """Rate, drift and K of smooth fields, and those of the equation."""

    def plain(one: SmoothEquation) -> JsonObject:
        return {"rate": _finite(one.rate), "drift": one.drift.tolist(), "K": one.K.tolist()}

    return {"holds": found.holds, "found": plain(found.found), "own": plain(found.own)}


def _errors(study: SpaceStudy | None) -> JsonObject:
    if study is None:
        return {"order": None, "order_linf": None, "cells": [], "relative_l2": [], "relative_linf": []}
    return {
        "order": study.l2.order,
        "order_linf": study.linf.order,
        "cells": list(study.cells),
        "relative_l2": [_finite(e) for e in study.l2.errors],
        "relative_linf": [_finite(e) for e in study.linf.errors],
    }


def _study(study: SpaceStudy) -> JsonObject:
    return {
        "problem": study.problem,
        "convergent": study.l2.convergent,
        **_errors(study),
        "rates_l2": [_finite(rate) for rate in study.l2.rates],
    }


def _units(found: Units | None) -> JsonObject | None:
    if found is None:
        return None
    parts = {name: _finite(getattr(found, name)) for name in ("lengths", "times", "temperatures", "shift")}
    return {"unchanged": found.holds, **parts, "from_the_algebra": list(found.algebra)}


def _transient(found: TransientGrowth | None) -> JsonObject | None:
    if found is None:
        return None
    return {
        "dt_over_fourier": found.over_fourier,
        "one_step": _finite(found.one_step),
        "largest": _finite(found.largest),
        "after_steps": found.steps,
        "normal": found.normal,
    }


def _stability(found: Stability | None) -> JsonObject:
    if found is None or (found.interval is None and found.dt_max is None):
        unknown = limit_kind(None)
        return {
            **{"real_interval": None, "unlimited": None, "dt_max_over_fourier": None, "amplification": None},
            **{"dt_limit_kind": unknown, "real_interval_kind": unknown},
        }
    # Without R(z) only some steps were tried; that all of them were stable does not make the step unlimited.
    limit = found.dt_max if found.bound or not (found.dt_max is not None and math.isinf(found.dt_max)) else None
    unlimited = None if limit is None else math.isinf(limit)
    waves = {} if found.waves is None else {"waves": _waves(found.waves)}
    return {
        **waves,
        "real_interval": None if found.interval is None or math.isinf(found.interval) else -found.interval,
        "unlimited": unlimited,
        "dt_max_over_fourier": found.over_fourier,
        "dt_limit_kind": limit_kind(limit),
        "real_interval_kind": limit_kind(found.interval),
        "amplification": None if found.factor is None else str(found.factor),
        "one_operator": found.one_operator,
        "bound": found.bound,
        "oscillation_over_fourier": _oscillation(found),
        "stable_at_0.99": found.stable_below,
        "divergent_at_1.01": found.diverges_above,
    }


def _waves(found: WaveLimit) -> JsonObject:
    """Plane waves on an infinite lattice; null where there is no limit."""
    return {
        "lattice": found.lattice,
        "dt_max_over_reference": _finite(found.over_reference),
        "imaginary_eigenvalues": found.on_axis,
        "imaginary_interval": _finite(found.imaginary),
    }


def _oscillation(found: Stability) -> float | None:
    if found.oscillation is None or not found.rate:
        return None
    return found.oscillation / found.rate / found.fourier


def _cost(found: Cost | None, curves: tuple[CostCurve, ...]) -> JsonObject | None:
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


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True)
class Request:
    """The scheme, the meshes or families, the exact solution, and whether the certificate is quick."""

    scheme: Scheme
    mesh: Mesh | None
    families: tuple[Levels, ...]
    meshes: tuple[Mesh, ...]
    exact: str | None
    quick: bool

    @property
    def dimension(self) -> int:
        """3 where families in space were asked for, or the formulas are written for three coordinates."""
        in_space = any(one.dimension == 3 for one in self.families) or self.scheme.dimension == 3
        return 3 if in_space else 2
