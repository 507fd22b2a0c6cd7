"""A discovery by experiments: from a recipe to the flux, its scheme, certificate and report."""

from dataclasses import replace
from pathlib import Path

from msgspec import convert, structs

from fluxforge import recipe
from fluxforge._machine import count_threads, describe_processor, environment
from fluxforge.distil._engines import engine
from fluxforge.experiment._ablation import regress_sparsely, search_without_network
from fluxforge.experiment._data import design_experiment
from fluxforge.experiment._discover import Discovered, Trained, discover_flux, train_and_reduce
from fluxforge.experiment._scheme import make_scheme
from fluxforge.expression._print import to_text
from fluxforge.pipeline._folder import command_of
from fluxforge.pipeline._formula import tabulate_front
from fluxforge.pipeline._outcome import Outcome, verify_scheme
from fluxforge.report._experiment_page import write_experiment
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, add_seconds
from fluxforge.run.result import (
    AblationResult,
    AblationResults,
    CheckRow,
    Discovery,
    Explained,
    FluxRecord,
    Measurements,
    TextbookRow,
)
from fluxforge.scheme._scheme import Scheme

# Added to the seed of a run for the search without a network, so that its random numbers are independent.
_ABLATION_KEY = 2**20


def check_experiment(spec: recipe.Recipe) -> None:
    """Raise InputError, before any data are made, for a recipe whose experiments cannot be run."""
    design_experiment(spec)
    assert spec.search is not None
    engine(spec.search.engine)


def discover_experiment(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Outcome[Discovery]:
    """Run the experiments of a recipe, train a network, and find, judge and certify a formula of the flux."""
    trained = train_and_reduce(spec, tell, folder.path, folder.warn)
    discovered = discover_flux(trained, spec, tell)
    seconds = dict(discovered.seconds)
    scheme = certificate = None
    with add_seconds(seconds, "certify"):
        if discovered.flux is not None:
            scheme = make_scheme(discovered.flux, trained.data.experiment, spec.name)
            certificate = verify_scheme(scheme, tell)
    ablations = regress_without_network(trained, spec, tell)
    seconds["ablations"] = ablations.seconds
    described = describe_flux(discovered, scheme, ablations, spec)
    result = structs.replace(
        described, certificate=None if certificate is None else certificate.to_document(), seconds=seconds
    )
    return Outcome(result, scheme, certificate, networks=("network.safetensors", "reduced.safetensors"))


def report_experiment(outcome: Outcome[Discovery], folder: RunFolder, into: Path) -> list[Path]:
    """Write the report of a run; returns its path."""
    return write_experiment(
        outcome.result, into, scheme=outcome.scheme, certificate=outcome.certificate, command=command_of(folder)
    )


def regress_without_network(trained: Trained, spec: recipe.Recipe, tell: Progress) -> AblationResults:
    """Fit the measured fluxes without a network: by the formula search, and by sparse regression."""
    tell("searching without a network", 0, 1)
    without = (search_without_network(trained.data, spec, spec.seed + _ABLATION_KEY), regress_sparsely(trained.data))
    rows = convert(without, tuple[AblationResult, ...], from_attributes=True)
    return AblationResults(reason="", seconds=sum(each.seconds for each in without), found=rows)


def describe_flux(
    discovered: Discovered, scheme: Scheme | None, ablations: AblationResults, spec: recipe.Recipe
) -> Discovery:
    """The record of a run without its certificate and its seconds, which the caller adds."""
    stage = None if scheme is None else scheme.stages[-1]
    return Discovery(
        recipe=spec.name,
        seed=spec.seed,
        equation=discovered.trained.data.experiment.equation.name,
        environment=environment(),
        seconds={},
        verdict=discovered.verdict,
        recovered=discovered.verdict == "recovered",
        reasons=discovered.reasons,
        ended_by_clock=("flux",) if discovered.ended_by_clock else (),
        fronts={"g": tabulate_front(replace(discovered.front, ended_by_clock=discovered.ended_by_clock), "flux")},
        messages=None if stage is None else {name: to_text(each.expression) for name, each in stage.messages.items()},
        outputs=None if stage is None else {name: to_text(each.expression) for name, each in stage.outputs.items()},
        explained=Explained(least=discovered.explained),
        expected=spec.expect,
        as_expected=discovered.verdict in ("recovered", spec.expect),
        findings=_findings(discovered),
        ablations=ablations,
        experiment=_flux_record(discovered, spec),
    )


def _findings(discovered: Discovered) -> tuple[str, ...]:
    lines = []
    if discovered.textbook is not None:
        words = "is" if discovered.textbook.same else "is not"
        lines.append(
            f"the flux {words} the textbook's {to_text(discovered.textbook.formula)} "
            f"({discovered.textbook.method}: largest difference {discovered.textbook.difference:.1e})"
        )
    if discovered.guarded:
        lines.append("in the scheme, arguments of g below 1e-5 are taken as 1e-5, since the formula is 0/0 at 0")
    return tuple(lines)


def _flux_record(discovered: Discovered, spec: recipe.Recipe) -> FluxRecord:
    trained, formula, book = discovered.trained, discovered.formula, discovered.textbook
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
        checks=convert(trained.checks, tuple[CheckRow, ...], from_attributes=True),
        form=_form_text(discovered),
        g=None if formula is None else to_text(formula.g),
        flux=None if discovered.flux is None else to_text(discovered.flux),
        guarded=discovered.guarded,
        error=None if formula is None else formula.error,
        worst=None if formula is None else formula.worst,
        share=None if formula is None else formula.share,
        textbook=None
        if book is None
        else TextbookRow(formula=to_text(book.formula), same=book.same, difference=book.difference, method=book.method),
        processor=describe_processor(),
        threads=count_threads(),
    )


def _form_text(discovered: Discovered) -> str:
    """The reduced form F = offset + weight·g(columns) + … of a flux as text."""
    form = discovered.trained.reduced.form
    parts = [f"({to_text(term.weight)})*g({', '.join(map(to_text, term.columns))})" for term in form.terms]
    return " + ".join(([to_text(form.offset)] if form.offset != 0 else []) + parts)
