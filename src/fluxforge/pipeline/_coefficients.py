"""Discovery with a network in the form of a flux: train, measure on unseen meshes, distil its coefficients, judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge.certify import Certificate, summarise
from fluxforge.data import AbstractSource, RefinedSource, model_of, source
from fluxforge.distil import Front, Table, engine
from fluxforge.distil import Search as Limits
from fluxforge.errors import DiscoveryError
from fluxforge.expression import to_text
from fluxforge.gnn import FluxNetwork
from fluxforge.mesh import DualGraph, dual
from fluxforge.pde import Equation
from fluxforge.pipeline._carry import (
    FIELDS,
    Case,
    initial_field,
    measure_carry,
    mesh_parameters,
    relative_error,
    unseen_mesh,
)
from fluxforge.pipeline._carry_checks import (
    LEAST_KEPT,
    coefficient_points,
    effective_rates,
    errors_by_step,
    judge_network,
    judge_run,
)
from fluxforge.pipeline._certification import name_outputs, verify_scheme
from fluxforge.pipeline._distillation import choose_flux_member
from fluxforge.pipeline._folder import Progress, add_seconds, environment, training_progress
from fluxforge.pipeline._order import impose_order, learned_values
from fluxforge.pipeline._stability import measure_stability
from fluxforge.run import RunFolder
from fluxforge.run.carry import CarryResult, CarryRow, EffectiveRow, StepRow
from fluxforge.run.result import FrontRow, FrontTable
from fluxforge.scheme import Scheme, face_invariants, formula_scheme, save
from fluxforge.stepping import face_coefficients, face_numbers
from fluxforge.train import train

# Formulas are chosen on a mesh of its own: neither trained on nor among those of the table.
_CHOOSING, _CHOICE_CELLS = 7, 400
_SAMPLED = (0.1, 0.3, 0.6, 1.0)
# Errors of the coefficients, from coarse to fine, among which the shortest formulas that keep enough are looked for.
_LEVELS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.0)


@dataclass(frozen=True)
class Distilled:
    """Formulas of the faces' numbers, by coefficient, the share of the gain they keep, and all candidates."""

    formulas: Mapping[str, sp.Expr]
    kept: float
    fronts: Mapping[str, FrontTable]


def discover_coefficients(
    spec: recipe.Recipe, folder: RunFolder, tell: Progress
) -> tuple[CarryResult, Scheme | None, Certificate | None]:
    """From a recipe to the record of its run, and the certified scheme of its formulas, if they keep enough."""
    seconds: dict[str, float] = {}
    with add_seconds(seconds, "train"):
        problems = source(spec)
        trained = train(spec, problems, folder=folder, tell=training_progress(tell))
        network, member = choose_flux_member(trained, spec)
    values = dict(model_of(spec).values)
    with add_seconds(seconds, "distil"):
        distilled, refusal = _try_to_distil(network, values, spec, tell)
    with add_seconds(seconds, "measure"):
        rows = _measure(network, values, spec, distilled, tell)
        steps, effective = _check_network(network, values, spec)
        points = coefficient_points(
            network,
            *_choice(network.equation, values, spec),
            longest=_longest(spec),
            formulas=None if distilled is None else distilled.formulas,
        )
    scheme = certificate = None
    if distilled is not None:
        with add_seconds(seconds, "certify"):
            scheme = make_scheme(network, distilled.formulas, spec)
            certificate = verify_scheme(scheme, tell)
            own, beside = name_outputs(False)
            save(scheme, folder.path / own)
            certificate.save(folder.path / beside)
    verdict, reasons = judge_run(judge_network(rows, steps, effective), certificate, refusal)
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
        carry=rows,
        steps=steps,
        effective=effective,
        points=points,
        order=network.order,
        stability=measure_stability(network, None if distilled is None else distilled.formulas),
        findings=(
            *_describe_answers(problems),
            *(() if scheme is None or certificate is None else (summarise(certificate, scheme),)),
        ),
        certificate=None if certificate is None else certificate.to_document(),
        skipped=trained.skipped,
        seconds=seconds,
        environment=environment(),
    )
    return found, scheme, certificate


def _longest(spec: recipe.Recipe) -> float:
    assert isinstance(spec.data, recipe.Meshes)
    return spec.data.fourier[1]


def _describe_answers(problems: AbstractSource) -> tuple[str, ...]:
    """How well answers by refinement are resolved."""
    if not isinstance(problems, RefinedSource):
        return ()
    levels, off = problems.levels, problems.difference
    return (f"Answers of cells divided {levels} times differ by {off:.2%} of the change from those of one less.",)


def make_scheme(network: FluxNetwork, formulas: Mapping[str, sp.Expr], spec: recipe.Recipe) -> Scheme:
    """The scheme with these formulas of the faces' numbers in place of the MLPs."""
    by_tag = {name.removeprefix("c"): each for name, each in formulas.items()}
    summary = f"{network.tableau.summary} with coefficients of faces, distilled from a network"
    return formula_scheme(spec.name, network.tableau, network.equation, by_tag, free=network.free, summary=summary)


def _try_to_distil(
    network: FluxNetwork, values: Mapping[str, recipe.Value], spec: recipe.Recipe, tell: Progress
) -> tuple[Distilled | None, str | None]:
    try:
        return distil_coefficients(network, values, spec, tell), None
    except DiscoveryError as error:
        return None, str(error)


def distil_coefficients(
    network: FluxNetwork, values: Mapping[str, recipe.Value], spec: recipe.Recipe, tell: Progress
) -> Distilled:
    """Search a formula for each coefficient, and take the shortest that together keep the network's gain.

    Raises DiscoveryError where none do.
    """
    assert spec.search is not None
    limits = _limits(spec.search)
    fronts: dict[str, Front] = {}
    names = [each.coefficient.name for each in network.weighted]
    for k, name in enumerate(names):
        tell(f"searching a formula for {name}", k, len(names))
        table = sample_coefficient(network, k, values, spec)
        fronts[name] = impose_order(engine(spec.search.engine).fit(table, limits, seed=spec.seed), network.order)
    gain = _Gain(network, values, spec)
    best: tuple[float, dict[str, int]] = (-np.inf, {})
    for level in _LEVELS:
        chosen = {name: _shortest(front, level) for name, front in fronts.items()}
        kept = gain([fronts[name].candidates[k].expression for name, k in chosen.items()])
        best = max(best, (kept, chosen), key=lambda pair: pair[0])
        if kept >= LEAST_KEPT:
            best = (kept, chosen)
            break
    kept, chosen = best
    if kept == -np.inf:
        raise DiscoveryError("the network gains nothing over its integrator at a step that formulas are chosen by")
    if kept < LEAST_KEPT:
        raise DiscoveryError(
            f"the best formulas keep {kept:.0%} of the network's gain over its integrator (at least {LEAST_KEPT:.0%})"
        )
    formulas = {name: fronts[name].candidates[k].expression for name, k in chosen.items()}
    return Distilled(formulas, kept, {name: _front_table(front, chosen[name]) for name, front in fronts.items()})


def _limits(search: recipe.Search) -> Limits:
    signs = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
    return Limits(
        operators=tuple(signs.get(name, name) for name in search.operators),
        max_complexity=search.most_complex,
        seconds=search.seconds,
        restarts=search.restarts,
        evaluations=search.evaluations,
    )


def sample_coefficient(
    network: FluxNetwork, stage: int, values: Mapping[str, recipe.Value], spec: recipe.Recipe
) -> Table:
    """Coefficients of a stage at faces of an unseen mesh, over the steps trained with; with order 2 the g in them."""
    assert spec.search is not None
    assert isinstance(spec.data, recipe.Meshes)
    graph, own = _choice(network.equation, values, spec)
    names = tuple(face_invariants(network.equation))
    columns, outputs = [], []
    for share in _SAMPLED:
        case = Case(graph, network.equation, own, share * spec.data.fourier[1])
        numbers = face_numbers(network.equation, graph, case.dt, parameters=own)
        found = face_coefficients(network, graph, case.dt, parameters=own)[stage]
        used = graph.slot_mask
        columns.append(np.stack([numbers[name][used] for name in names], axis=1))
        outputs.append(learned_values(found[used], numbers["total"][used], network.order))
    X, y = np.concatenate(columns), np.concatenate(outputs)
    kept = np.random.default_rng(spec.seed).permutation(len(y))[: spec.search.samples]
    return Table(names, X[kept], y[kept])


def _choice(
    equation: Equation, values: Mapping[str, recipe.Value], spec: recipe.Recipe
) -> tuple[DualGraph, dict[str, Any]]:
    """The mesh on which formulas are chosen, and the parameters on it."""
    assert isinstance(spec.data, recipe.Meshes)
    graph = dual(unseen_mesh(_CHOICE_CELLS, spec.seed + _CHOOSING))
    own = mesh_parameters(equation, values, graph, jumps=spec.data.jumps, seed=spec.seed + _CHOOSING)
    return graph, own


class _Gain:
    """The share of the network's gain over its integrator that formulas keep: the least of both kinds of field."""

    def __init__(self, network: FluxNetwork, values: Mapping[str, recipe.Value], spec: recipe.Recipe) -> None:
        assert isinstance(spec.data, recipe.Meshes)
        self.network = network
        graph, own = _choice(network.equation, values, spec)
        self.cases = [Case(graph, network.equation, own, share * spec.data.fourier[1]) for share in (0.4, 0.85)]
        self.fields = [initial_field(graph, kind, spec.seed + _CHOOSING, network.equation) for kind in FIELDS]
        self.exact = [[case.resolve(T) for T in self.fields] for case in self.cases]

    def __call__(self, formulas: Sequence[sp.Expr]) -> float:
        found = []
        for case, exact in zip(self.cases, self.exact, strict=True):
            steps = (case.formula(self.network, formulas), case.step(self.network), case.plain(self.network))
            for T, wanted in zip(self.fields, exact, strict=True):
                ours, networks, plain = (relative_error(step(T), wanted, T) for step in steps)
                found.append((plain - ours) / (plain - networks) if plain > networks else -np.inf)
        finite = [each if np.isfinite(each) else -np.inf for each in found]
        return float(min(finite))


def _shortest(front: Front, level: float) -> int:
    """The shortest candidate whose error is at most the level, or the one of least error."""
    errors = [candidate.error for candidate in front.candidates]
    return next((k for k, error in enumerate(errors) if error <= level), int(np.argmin(errors)))


def _front_table(front: Front, chosen: int) -> FrontTable:
    rows = tuple(FrontRow(complexity=each.complexity, error=each.error, formula=each.text) for each in front.candidates)
    return FrontTable(kind="coefficient", chosen=chosen, ended_by_clock=front.ended_by_clock, rows=rows)


def _measure(
    network: FluxNetwork,
    values: Mapping[str, recipe.Value],
    spec: recipe.Recipe,
    distilled: Distilled | None,
    tell: Progress,
) -> tuple[CarryRow, ...]:
    assert isinstance(spec.data, recipe.Meshes)
    formulas = None if distilled is None else list(distilled.formulas.values())
    longest = spec.data.fourier[1]
    rows: list[CarryRow] = []
    found = measure_carry(
        network,
        parameters=values,
        seed=spec.seed,
        longest=longest,
        jumps=spec.data.jumps,
        formulas=formulas,
        fourier=min(spec.evaluation.fourier, longest),
        cells=spec.evaluation.carry,
    )
    for row in found:
        rows.append(row)
        tell(f"unseen meshes: {row.cells} cells", len(rows), len(FIELDS) * len(spec.evaluation.carry))
    return tuple(rows)


def _check_network(
    network: FluxNetwork, values: Mapping[str, recipe.Value], spec: recipe.Recipe
) -> tuple[tuple[StepRow, ...], tuple[EffectiveRow, ...]]:
    assert isinstance(spec.data, recipe.Meshes)
    graph = dual(unseen_mesh(min(spec.evaluation.carry), spec.seed))
    own = mesh_parameters(network.equation, values, graph, jumps=spec.data.jumps, seed=spec.seed)
    steps = errors_by_step(network, graph, own, spec.data.fourier, spec.seed)
    return steps, effective_rates(network, values, min(spec.evaluation.fourier, spec.data.fourier[1]))
