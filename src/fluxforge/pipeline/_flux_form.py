"""Discovery with a network in the form of a flux: train, distil its coefficients, measure, certify, judge, report."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import sympy as sp

from fluxforge import recipe
from fluxforge._machine import environment
from fluxforge.certify._certificate import Certificate
from fluxforge.certify._summary import summarise
from fluxforge.data._model import model_of
from fluxforge.data._problem import AbstractSource
from fluxforge.data._source import RefinedSource, source
from fluxforge.errors import DiscoveryError
from fluxforge.expression._print import to_text
from fluxforge.gnn._flux_form import FluxNetwork
from fluxforge.mesh._build import dual
from fluxforge.pipeline._carry import FIELDS, measure_carry, mesh_parameters, unseen_mesh
from fluxforge.pipeline._carry_checks import (
    coefficient_points,
    effective_rates,
    errors_by_step,
    judge_network,
    judge_run,
)
from fluxforge.pipeline._certification import name_outputs, verify_scheme
from fluxforge.pipeline._coefficients import Distilled, choose_mesh, distil_coefficients
from fluxforge.pipeline._distillation import choose_flux_member
from fluxforge.pipeline._folder import finite, record_outputs, training_progress
from fluxforge.pipeline._stability import measure_stability
from fluxforge.report._carry_page import write_carry
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, add_seconds
from fluxforge.run._record import Document
from fluxforge.run.carry import CarryResult, CarryRow, CoefficientPoints, EffectiveRow, StepRow
from fluxforge.run.result import from_document, to_document
from fluxforge.scheme._document import load, save
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme._weighted import formula_scheme
from fluxforge.train._train import train

Values = Mapping[str, recipe.Value]


@dataclass(frozen=True)
class Measured:
    """A network on meshes that training did not see.

    `rows` are errors by mesh and field, `steps` errors over the trained range of Δt, `effective` the rates of smooth
    fields on squares, `points` the coefficients of some faces.
    """

    rows: tuple[CarryRow, ...]
    steps: tuple[StepRow, ...]
    effective: tuple[EffectiveRow, ...]
    points: dict[str, CoefficientPoints]


@dataclass(frozen=True)
class CertifiedScheme:
    """The scheme of the formulas with its certificate, both saved in the run folder."""

    scheme: Scheme
    certificate: Certificate


def discover_carry(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Document:
    """Run a recipe to its end, and write scheme, certificate and report; returns the document."""
    seconds: dict[str, float] = {}
    with add_seconds(seconds, "train"):
        problems = source(spec)
        trained = train(spec, problems, folder=folder, tell=training_progress(tell))
        network, member = choose_flux_member(trained, spec)
    values = dict(model_of(spec).values)
    with add_seconds(seconds, "distil"):
        distilled, refusal = _try_to_distil(network, values, spec, tell)
    with add_seconds(seconds, "measure"):
        measured = _measure(network, values, spec, distilled, tell)
    certified = None
    if distilled is not None:
        with add_seconds(seconds, "certify"):
            certified = _certify(network, distilled.formulas, spec, folder.path, tell)
    checks = judge_network(measured.rows, measured.steps, measured.effective)
    verdict, reasons = judge_run(checks, None if certified is None else certified.certificate, refusal)
    found = CarryResult(
        recipe=spec.name,
        seed=spec.seed,
        member=member,
        equation=network.equation.name,
        integrator=network.tableau.name,
        verdict=verdict,
        expected=spec.expect,
        as_expected=verdict == spec.expect,
        reasons=reasons,
        kept=None if distilled is None else distilled.kept,
        coefficients={} if distilled is None else {name: to_text(each) for name, each in distilled.formulas.items()},
        fronts={} if distilled is None else dict(distilled.fronts),
        carry=measured.rows,
        steps=measured.steps,
        effective=measured.effective,
        points=measured.points,
        order=network.order,
        stability=measure_stability(network, None if distilled is None else distilled.formulas),
        findings=_findings(problems, certified),
        certificate=None if certified is None else certified.certificate.to_document(),
        skipped=trained.skipped,
        seconds=seconds,
        environment=environment(),
    )
    return _write(found, certified, spec, folder)


def rewrite_carry(document: Document, folder: RunFolder, into: Path, _: Progress) -> None:
    """Write the report of a finished run again; its scheme is in `into`."""
    path = into / name_outputs(False)[0]
    write_carry(from_document(document, CarryResult, folder.path), load(path) if path.exists() else None, into)


def _try_to_distil(
    network: FluxNetwork, values: Values, spec: recipe.Recipe, tell: Progress
) -> tuple[Distilled | None, str | None]:
    """The formulas of the coefficients, or the reason why there are none."""
    try:
        return distil_coefficients(network, values, spec, tell), None
    except DiscoveryError as error:
        return None, str(error)


def _measure(
    network: FluxNetwork, values: Values, spec: recipe.Recipe, distilled: Distilled | None, tell: Progress
) -> Measured:
    data, wanted = spec.data, spec.evaluation
    assert isinstance(data, recipe.Meshes)
    longest = data.fourier[1]
    fourier = min(wanted.fourier, longest)
    formulas = None if distilled is None else distilled.formulas
    rows: list[CarryRow] = []
    for row in measure_carry(
        network,
        parameters=values,
        seed=spec.seed,
        longest=longest,
        jumps=data.jumps,
        formulas=None if formulas is None else list(formulas.values()),
        fourier=fourier,
        cells=wanted.carry,
    ):
        rows.append(row)
        tell(f"unseen meshes: {row.cells} cells", len(rows), len(FIELDS) * len(wanted.carry))
    graph = dual(unseen_mesh(min(wanted.carry), spec.seed))
    own = mesh_parameters(network.equation, values, graph, jumps=data.jumps, seed=spec.seed)
    return Measured(
        rows=tuple(rows),
        steps=errors_by_step(network, graph, own, data.fourier, spec.seed),
        effective=effective_rates(network, values, fourier),
        points=coefficient_points(
            network, *choose_mesh(network.equation, values, spec), longest=longest, formulas=formulas
        ),
    )


def _certify(
    network: FluxNetwork, formulas: Mapping[str, sp.Expr], spec: recipe.Recipe, folder: Path, tell: Progress
) -> CertifiedScheme:
    """Verify the scheme that has these formulas of the faces' numbers in place of the MLPs, and save both."""
    by_tag = {name.removeprefix("c"): each for name, each in formulas.items()}
    summary = f"{network.tableau.summary} with coefficients of faces, distilled from a network"
    scheme = formula_scheme(spec.name, network.tableau, network.equation, by_tag, free=network.free, summary=summary)
    certificate = verify_scheme(scheme, tell)
    own, beside = name_outputs(False)
    save(scheme, folder / own)
    certificate.save(folder / beside)
    return CertifiedScheme(scheme, certificate)


def _findings(problems: AbstractSource, certified: CertifiedScheme | None) -> tuple[str, ...]:
    """How well answers by refinement are resolved, and the summary of the certificate."""
    lines = []
    if isinstance(problems, RefinedSource):
        levels, off = problems.levels, problems.difference
        lines.append(
            f"Answers of cells divided {levels} times differ by {off:.2%} of the change from those of one less."
        )
    if certified is not None:
        lines.append(summarise(certified.certificate, certified.scheme))
    return tuple(lines)


def _write(found: CarryResult, certified: CertifiedScheme | None, spec: recipe.Recipe, folder: RunFolder) -> Document:
    document: Document = finite(to_document(found))
    result = from_document(document, CarryResult, folder.path)
    paths = write_carry(result, None if certified is None else certified.scheme, folder.path)
    texts = () if certified is None else tuple(folder.path / name for name in name_outputs(False))
    record_outputs(folder, spec, paths, texts=texts)
    return document
