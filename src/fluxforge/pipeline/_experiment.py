"""A discovery by experiments in a run folder: from a recipe to the flux, its scheme, certificate and report."""

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fluxforge import recipe
from fluxforge._machine import count_threads, describe_processor, environment
from fluxforge.certify._certificate import Certificate
from fluxforge.distil._engines import engine
from fluxforge.experiment._ablation import WithoutNetwork, regress_sparsely, search_without_network
from fluxforge.experiment._discover import Discovered, discover_flux, train_and_reduce
from fluxforge.experiment._scheme import make_scheme
from fluxforge.experiment._setup import design_experiment
from fluxforge.expression._print import to_text
from fluxforge.pipeline._certification import name_outputs, verify_scheme
from fluxforge.pipeline._folder import finite, record_outputs
from fluxforge.report._experiment_page import write_experiment
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress
from fluxforge.run._record import Document
from fluxforge.run.result import (
    AblationResult,
    AblationResults,
    CheckRow,
    Discovery,
    Explained,
    FluxRecord,
    FrontRow,
    FrontTable,
    Measurements,
    TextbookRow,
    from_document,
    to_document,
)
from fluxforge.scheme._document import load, save
from fluxforge.scheme._scheme import Scheme

# Keeps the search without a network apart from that of the run.
_ABLATION = 2**20


def check_experiment(spec: recipe.Recipe) -> None:
    """Refuse, before any data are made, a recipe whose experiments cannot be run; raises InputError."""
    design_experiment(spec)
    assert spec.search is not None
    engine(spec.search.engine)


def discover_experiment(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Document:
    """From a recipe of experiments to its scheme, certificate and report in the folder; returns the document."""
    trained = train_and_reduce(spec, tell, folder.path, folder.warn)
    found = discover_flux(trained, spec, tell)
    seconds, began = dict(found.seconds), time.perf_counter()
    scheme = None if found.flux is None else make_scheme(found.flux, trained.data.experiment, spec.name)
    certificate = None if scheme is None else verify_scheme(scheme, tell)
    seconds["certify"] = time.perf_counter() - began
    tell("searching without a network", 0, 1)
    without = (search_without_network(trained.data, spec, spec.seed + _ABLATION), regress_sparsely(trained.data))
    seconds["ablations"] = sum(each.seconds for each in without)
    discovery = describe_flux(found, spec, scheme, certificate, without, seconds)
    texts = [] if scheme is None or certificate is None else _write(scheme, certificate, found.verdict, folder.path)
    document: Document = finite(to_document(discovery))
    networks = (folder.path / f"{name}.safetensors" for name in ("network", "reduced"))
    result = from_document(document, Discovery, folder.path)
    record_outputs(folder, spec, (*_report(result, folder, folder.path, scheme, certificate), *networks), texts=texts)
    return document


def rewrite_experiment(document: Document, folder: RunFolder, into: Path, tell: Progress) -> None:
    """The report of a finished run again; its scheme is in `into`, and is verified anew for the certificate."""
    scheme = certificate = None
    result = from_document(document, Discovery, folder.path)
    if (path := into / name_outputs(result.recovered)[0]).exists():
        scheme = load(path)
        certificate = verify_scheme(scheme, tell)
    _report(result, folder, into, scheme, certificate)


def _write(scheme: Scheme, certificate: Certificate, verdict: str, folder: Path) -> list[Path]:
    own, beside = name_outputs(verdict == "recovered")
    save(scheme, folder / own)
    certificate.save(folder / beside)
    return [folder / own, folder / beside]


def _report(
    result: Discovery, folder: RunFolder, into: Path, scheme: Scheme | None, certificate: Certificate | None
) -> list[Path]:
    command = str(folder.description.get("command", ""))
    return write_experiment(result, into, scheme=scheme, certificate=certificate, command=command)


def describe_flux(
    found: Discovered,
    spec: recipe.Recipe,
    scheme: Scheme | None,
    certificate: Certificate | None,
    without: tuple[WithoutNetwork, ...],
    seconds: Mapping[str, float],
) -> Discovery:
    """The record of a run."""
    stage = None if scheme is None else scheme.stages[-1]
    return Discovery(
        recipe=spec.name,
        seed=spec.seed,
        equation=found.trained.data.experiment.equation.name,
        environment=environment(),
        seconds=dict(seconds),
        verdict=found.verdict,
        recovered=found.verdict == "recovered",
        reasons=found.reasons,
        ended_by_clock=("flux",) if found.ended_by_clock else (),
        fronts={"g": _front(found)},
        messages=None if stage is None else {name: to_text(each.expression) for name, each in stage.messages.items()},
        outputs=None if stage is None else {name: to_text(each.expression) for name, each in stage.outputs.items()},
        explained=Explained(least=found.explained),
        expected=spec.expect,
        as_expected=found.verdict in ("recovered", spec.expect),
        findings=_findings(found),
        certificate=None if certificate is None else certificate.to_document(),
        ablations=AblationResults(
            reason="", seconds=seconds["ablations"], found=tuple(_describe_ablation(each) for each in without)
        ),
        experiment=_flux_record(found, spec),
    )


def _describe_ablation(without: WithoutNetwork) -> AblationResult:
    error = without.error if np.isfinite(without.error) else None
    return AblationResult(method=without.method, formula=without.formula, error=error, seconds=without.seconds)


def _front(found: Discovered) -> FrontTable:
    rows = tuple(FrontRow(complexity=n, error=error, formula=text) for n, error, text in found.front.rows())
    return FrontTable(kind="flux", rows=rows, ended_by_clock=found.ended_by_clock)


def _findings(found: Discovered) -> tuple[str, ...]:
    lines = []
    if found.textbook is not None:
        words = "is" if found.textbook.same else "is not"
        lines.append(
            f"the flux {words} the textbook's {to_text(found.textbook.formula)} "
            f"({found.textbook.method}: largest difference {found.textbook.difference:.1e})"
        )
    if found.guarded:
        lines.append("in the scheme, arguments of g below 1e-5 are taken as 1e-5, since the formula is 0/0 at 0")
    return tuple(lines)


def _flux_record(found: Discovered, spec: recipe.Recipe) -> FluxRecord:
    trained, formula, book = found.trained, found.formula, found.textbook
    data, wanted = trained.data, spec.data
    assert isinstance(wanted, recipe.Experiment)
    method = "linear elements, extrapolated" if data.experiment.steady else "Nessyahu and Tadmor's central scheme"
    return FluxRecord(
        data=Measurements(
            samples=len(data),
            held_out=len(data.held_out),
            variables=data.experiment.names,
            method=f"the formula {wanted.law}" if wanted.law else method,
            tolerance=wanted.tolerance,
            error=data.relative_error,
            worst=float(data.error.max()) / data.size,
        ),
        network_error=trained.whole.error,
        reduced_error=trained.reduced.error,
        checks=tuple(
            CheckRow(
                name=each.name,
                statement=each.statement,
                defect=each.defect,
                limit=each.limit,
                holds=each.holds,
                used=each.used,
            )
            for each in trained.checks
        ),
        form=_form_text(found),
        g=None if formula is None else to_text(formula.g),
        flux=None if found.flux is None else to_text(found.flux),
        guarded=found.guarded,
        error=None if formula is None else formula.error,
        worst=None if formula is None else formula.worst,
        share=None if formula is None else formula.share,
        textbook=None
        if book is None
        else TextbookRow(formula=to_text(book.formula), same=book.same, difference=book.difference, method=book.method),
        processor=describe_processor(),
        threads=count_threads(),
    )


def _form_text(found: Discovered) -> str:
    """F = offset + weight·g(columns) + …, as text."""
    form = found.trained.reduced.form
    parts = [
        f"({to_text(term.weight)})*g({', '.join(to_text(column) for column in term.columns)})" for term in form.terms
    ]
    return " + ".join(([to_text(form.offset)] if form.offset != 0 else []) + parts)
