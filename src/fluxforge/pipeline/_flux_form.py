"""Discovery with a network in the form of a flux: train, distil its coefficients, measure, certify, judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge._machine import environment
from fluxforge.certify._certificate import Certificate
from fluxforge.certify._summary import summarise
from fluxforge.data._model import model_of
from fluxforge.data._refined import RefinedSource
from fluxforge.data._source import source
from fluxforge.distil._backend import Search
from fluxforge.distil._engines import engine
from fluxforge.distil._front import Front
from fluxforge.distil._simplify import search_front
from fluxforge.distil._table import Table
from fluxforge.errors import DiscoveryError
from fluxforge.expression._print import to_text
from fluxforge.gnn._flux_form import FluxNetwork
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings
from fluxforge.pde._equation import Equation
from fluxforge.pipeline._carry import (
    FIELDS,
    LEAST_KEPT,
    Case,
    FaceSample,
    coefficient_points,
    effective_rates,
    errors_by_step,
    initial_field,
    judge_network,
    judge_run,
    measure_carry,
    mesh_parameters,
    relative_error,
    sample_faces,
    unseen_mesh,
)
from fluxforge.pipeline._coefficients import impose_order, learned_values, measure_stability
from fluxforge.pipeline._folder import command_of, training_progress
from fluxforge.pipeline._formula import tabulate_front
from fluxforge.pipeline._outcome import Outcome, verify_scheme
from fluxforge.pipeline._problems import choose_member
from fluxforge.report._carry_page import write_carry
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, add_seconds
from fluxforge.run.carry import CarryResult, CarryRow, CoefficientPoints, EffectiveRow, StepRow
from fluxforge.run.result import FrontTable
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme._weighted import face_invariants, formula_scheme
from fluxforge.stepping._frozen_flux import FrozenFlux
from fluxforge.train._train import train

# Offset of the seed, and size, of the mesh on which formulas are chosen. It is none of the meshes of the error table.
_CHOOSING, _CHOICE_CELLS = 7, 400
# Relative errors of the coefficients, in descending order: at each the shortest formulas are tried, until they keep
# enough of the gain.
_LEVELS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.0)
Values: TypeAlias = Mapping[str, recipe.Value]


@dataclass(frozen=True)
class TrainedFlux:
    """The network of least loss of a training, its index among the seeds, and the steps each seed skipped.

    `resolution` is a sentence on the accuracy of answers that were computed on refined meshes; None for exact answers.
    """

    network: FluxNetwork
    member: int
    skipped: tuple[int, ...]
    resolution: str | None


@dataclass(frozen=True)
class Coefficients:
    """Formulas of the faces' numbers by coefficient, the share of the network's gain they keep, and all candidates."""

    formulas: Mapping[str, sp.Expr]
    kept: float
    fronts: Mapping[str, FrontTable]


@dataclass(frozen=True)
class DistilledFlux:
    """The formulas of a network's coefficients, or the reason why there are none."""

    coefficients: Coefficients | None
    refusal: str | None

    @property
    def formulas(self) -> Mapping[str, sp.Expr] | None:
        """The formulas by coefficient; None if there are none."""
        return None if self.coefficients is None else self.coefficients.formulas


@dataclass(frozen=True)
class MeasuredFlux:
    """What was measured of a network on meshes that training did not see.

    `rows` are errors by mesh and field, `steps` errors over the trained range of Δt, `effective` the rates of smooth
    fields on squares, `points` the coefficients of randomly chosen faces.
    """

    rows: tuple[CarryRow, ...]
    steps: tuple[StepRow, ...]
    effective: tuple[EffectiveRow, ...]
    points: dict[str, CoefficientPoints]


def discover_flux_form(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Outcome[CarryResult]:
    """Train a network in the form of a flux, distil formulas of its coefficients, measure, certify and judge both."""
    seconds: dict[str, float] = {}
    values = dict(model_of(spec).values)
    with add_seconds(seconds, "train"):
        trained = train_flux_network(spec, folder, tell)
    with add_seconds(seconds, "distil"):
        distilled = distil_flux_network(trained.network, values, spec, tell)
    with add_seconds(seconds, "measure"):
        measured = measure_flux_network(trained.network, distilled.formulas, values, spec, tell)
    scheme = certificate = None
    if distilled.formulas is not None:
        with add_seconds(seconds, "certify"):
            scheme = coefficient_scheme(trained.network, distilled.formulas, spec)
            certificate = verify_scheme(scheme, tell)
    result = describe_flux_form(
        spec, trained, distilled, measured, scheme=scheme, certificate=certificate, seconds=seconds
    )
    return Outcome(result, scheme, certificate)


def report_flux_form(outcome: Outcome[CarryResult], folder: RunFolder, into: Path) -> list[Path]:
    """Write the report of a run; returns the paths of its files."""
    return write_carry(
        outcome.result, into, scheme=outcome.scheme, certificate=outcome.certificate, command=command_of(folder)
    )


def train_flux_network(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> TrainedFlux:
    """Train all seeds of a recipe, or continue from the last checkpoint, and choose the network of least loss.

    Raises TrainingError if none has a finite loss.
    """
    problems = source(spec)
    trained = train(spec, problems, folder=folder, tell=training_progress(tell))
    member = choose_member(trained, spec)
    resolution = None
    if isinstance(problems, RefinedSource):
        resolution = (
            f"Answers on cells divided {problems.levels} times differ from those on cells divided "
            f"{problems.levels - 1} times by {problems.difference:.2%} of the change in a step."
        )
    return TrainedFlux(trained.flux_member(member), member, trained.skipped, resolution)


def distil_flux_network(network: FluxNetwork, values: Values, spec: recipe.Recipe, tell: Progress) -> DistilledFlux:
    """Search formulas of the coefficients; if none keep enough of the gain, the result has the reason instead."""
    try:
        return DistilledFlux(distil_coefficients(network, values, spec, tell), None)
    except DiscoveryError as error:
        return DistilledFlux(None, str(error))


def measure_flux_network(
    network: FluxNetwork,
    formulas: Mapping[str, sp.Expr] | None,
    values: Values,
    spec: recipe.Recipe,
    tell: Progress,
) -> MeasuredFlux:
    """Measure network and formulas on unseen meshes, over the trained steps, and on squares that are refined."""
    data, wanted = spec.data, spec.evaluation
    assert isinstance(data, recipe.Meshes)
    longest = data.fourier[1]
    fourier = min(wanted.fourier, longest)
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
    mesh_values = mesh_parameters(network.equation, values, graph, jumps=data.jumps, seed=spec.seed)
    return MeasuredFlux(
        rows=tuple(rows),
        steps=errors_by_step(network, graph, mesh_values, data.fourier, spec.seed),
        effective=effective_rates(network, values, fourier),
        points=coefficient_points(
            network, *choose_mesh(network.equation, values, spec), longest=longest, formulas=formulas
        ),
    )


def coefficient_scheme(network: FluxNetwork, formulas: Mapping[str, sp.Expr], spec: recipe.Recipe) -> Scheme:
    """The network's integrator as a scheme, with formulas of the faces' numbers in place of the MLPs."""
    by_tag = {name.removeprefix("c"): each for name, each in formulas.items()}
    summary = f"{network.tableau.summary} with coefficients of faces, distilled from a network"
    return formula_scheme(spec.name, network.tableau, network.equation, by_tag, free=network.free, summary=summary)


def describe_flux_form(
    spec: recipe.Recipe,
    trained: TrainedFlux,
    distilled: DistilledFlux,
    measured: MeasuredFlux,
    *,
    scheme: Scheme | None,
    certificate: Certificate | None,
    seconds: Mapping[str, float],
) -> CarryResult:
    """The verdict on network and formulas, and the record of the run."""
    network, coefficients = trained.network, distilled.coefficients
    checks = judge_network(measured.rows, measured.steps, measured.effective)
    verdict, reasons = judge_run(checks, certificate, distilled.refusal)
    summary = None if scheme is None or certificate is None else summarise(certificate, scheme)
    return CarryResult(
        recipe=spec.name,
        seed=spec.seed,
        member=trained.member,
        equation=network.equation.name,
        integrator=network.tableau.name,
        verdict=verdict,
        expected=spec.expect,
        as_expected=verdict == spec.expect,
        reasons=reasons,
        kept=None if coefficients is None else coefficients.kept,
        coefficients={name: to_text(each) for name, each in (distilled.formulas or {}).items()},
        fronts={} if coefficients is None else dict(coefficients.fronts),
        carry=measured.rows,
        steps=measured.steps,
        effective=measured.effective,
        points=measured.points,
        order=network.order,
        stability=measure_stability(network, distilled.formulas),
        findings=tuple(line for line in (trained.resolution, summary) if line is not None),
        certificate=None if certificate is None else certificate.to_document(),
        skipped=trained.skipped,
        seconds=dict(seconds),
        environment=environment(),
    )


def distil_coefficients(network: FluxNetwork, values: Values, spec: recipe.Recipe, tell: Progress) -> Coefficients:
    """Search a formula for each coefficient, and choose the shortest that together keep the network's gain.

    Raises DiscoveryError if none keep at least `LEAST_KEPT` of it.
    """
    assert spec.search is not None
    limits = Search.of_recipe(spec.search)
    fronts: dict[str, Front] = {}
    names = [each.coefficient.name for each in network.weighted]
    assert isinstance(spec.data, recipe.Meshes)
    samples = list(sample_faces(network, *choose_mesh(network.equation, values, spec), longest=spec.data.fourier[1]))
    for k, name in enumerate(names):
        tell(f"searching a formula for {name}", k, len(names))
        table = tabulate_coefficient(network, k, samples, spec)
        fronts[name] = impose_order(
            search_front(engine(spec.search.engine), table, limits, seed=spec.seed), network.order
        )
    gain = _Gain(network, values, spec)
    if not gain.positive:
        raise DiscoveryError(
            "in at least one of the cases by which formulas are chosen, the network is not more accurate than its "
            "integrator"
        )
    kept, chosen = -np.inf, dict[str, int]()
    for level in _LEVELS:
        tried = {name: _choose_shortest(front, level) for name, front in fronts.items()}
        share = gain([fronts[name].candidates[k].expression for name, k in tried.items()])
        if share > kept:
            kept, chosen = share, tried
        if kept >= LEAST_KEPT:
            break
    if kept == -np.inf:
        raise DiscoveryError(
            "none of the formulas that were tried gives finite values in all cases by which formulas are chosen"
        )
    if kept < LEAST_KEPT:
        raise DiscoveryError(
            f"the best formulas keep {kept:.0%} of the network's gain over its integrator (at least {LEAST_KEPT:.0%})"
        )
    formulas = {name: fronts[name].candidates[k].expression for name, k in chosen.items()}
    tables = {name: tabulate_front(front, "coefficient", chosen[name]) for name, front in fronts.items()}
    return Coefficients(formulas, kept, tables)


def tabulate_coefficient(network: FluxNetwork, stage: int, samples: Sequence[FaceSample], spec: recipe.Recipe) -> Table:
    """The table of a search: the numbers of the faces, and the coefficients of a stage there, with order 2 their g."""
    assert spec.search is not None
    names = tuple(face_invariants(network.equation))
    X = np.concatenate([np.stack([numbers[name] for name in names], axis=1) for numbers, _ in samples])
    y = np.concatenate([learned_values(each[stage], numbers["total"], network.order) for numbers, each in samples])
    kept = np.random.default_rng(spec.seed).permutation(len(y))[: spec.search.samples]
    return Table(names, X[kept], y[kept])


def choose_mesh(equation: Equation, values: Values, spec: recipe.Recipe) -> tuple[DualGraph, Settings]:
    """The mesh on which formulas are chosen, and the parameters on it."""
    assert isinstance(spec.data, recipe.Meshes)
    graph = dual(unseen_mesh(_CHOICE_CELLS, spec.seed + _CHOOSING))
    mesh_values = mesh_parameters(equation, values, graph, jumps=spec.data.jumps, seed=spec.seed + _CHOOSING)
    return graph, mesh_values


class _Gain:
    """The share of the network's gain over its integrator that formulas keep: the least over time steps and fields.

    −∞ if a formula is not finite in one of these cases. `positive` says whether the network has a gain in all of them;
    without one there is no share.
    """

    def __init__(self, network: FluxNetwork, values: Values, spec: recipe.Recipe) -> None:
        assert isinstance(spec.data, recipe.Meshes)
        self.network = network
        graph, mesh_values = choose_mesh(network.equation, values, spec)
        self.cases = [Case(graph, network.equation, mesh_values, share * spec.data.fourier[1]) for share in (0.4, 0.85)]
        self.fields = [initial_field(graph, kind, spec.seed + _CHOOSING, network.equation) for kind in FIELDS]
        self.exact = [[case.resolve(T) for T in self.fields] for case in self.cases]
        self.of_network = self._measure([case.step(network) for case in self.cases])
        self.of_integrator = self._measure([case.plain(network) for case in self.cases])
        self.positive = bool((self.of_network < self.of_integrator).all())

    def __call__(self, formulas: Sequence[sp.Expr]) -> float:
        errors = self._measure([case.formula(self.network, formulas) for case in self.cases])
        with np.errstate(invalid="ignore"):
            shares = (self.of_integrator - errors) / (self.of_integrator - self.of_network)
        return float(np.where(np.isfinite(shares), shares, -np.inf).min())

    def _measure(self, steps: Sequence[FrozenFlux]) -> np.ndarray:
        """The relative errors of one step per case: a row per case, a column per field."""
        rows = zip(steps, self.exact, strict=True)
        return np.array(
            [
                [relative_error(step(T), wanted, T) for T, wanted in zip(self.fields, exact, strict=True)]
                for step, exact in rows
            ]
        )


def _choose_shortest(front: Front, level: float) -> int:
    """Index of the shortest candidate whose error is at most `level`; of the one of least error if there is none."""
    errors = [candidate.error for candidate in front.candidates]
    return next((k for k, error in enumerate(errors) if error <= level), int(np.argmin(errors)))
