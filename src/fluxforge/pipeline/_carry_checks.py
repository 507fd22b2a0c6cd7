"""What a network in the form of a flux must show beside its table: the right equation, at every trained step."""

from collections.abc import Mapping, Sequence

import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge.certify._certificate import Certificate
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._flux_form import FluxNetwork
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import squares
from fluxforge.mesh._parameters import Settings
from fluxforge.pipeline._carry import FIELDS, Case, initial_field, relative_error
from fluxforge.run.carry import CarryRow, CoefficientPoints, EffectiveRow, StepRow
from fluxforge.stepping._frozen_flux import face_coefficients, face_numbers

# Cells per side of squares, on which the two-point flux is consistent.
SIDES = (8, 16, 32, 64)
# Of the rate of smooth fields, extrapolated to squares of no size: what is left of order h⁴ is below a thousandth.
LARGEST_OFF = 0.005
# The part of the network's gain over its integrator that a formula must keep.
LEAST_KEPT = 0.8
# Of what a closed box holds: sums over 100,000 cells round to 1e-13 of it.
LARGEST_DEFECT = 1e-11
# Of the change of a step: at short steps an integrator errs less than it matters, and a network may err more.
NEGLIGIBLE = 1e-3
# Steps across the trained range at which a network is held against its integrator.
STEPS = 4
# Faces of each step in the figure of the coefficients.
POINTS = 60


def effective_rates(
    network: FluxNetwork, values: Mapping[str, recipe.Value], fourier: float, sides: Sequence[int] = SIDES
) -> tuple[EffectiveRow, ...]:
    """The part of ∂u/∂t = f(u) that a step of a smooth field has, ⟨u' − u, Δt f⟩/⟨Δt f, Δt f⟩, as squares are refined.

    Of heat that is the diffusivity the field sees, over α. Δt is so many reference steps, so that it tends to 0, and
    the number to 1 where the step solves the equation.
    """
    rows = []
    for n in sides:
        graph = dual(squares(n))
        case = Case(graph, network.equation, values, fourier)
        u = np.prod(np.sin(np.pi * graph.x), axis=1)
        plain = case.plain(network)
        f = plain.rate @ u + plain.constant + (0.0 if plain.reaction is None else plain.reaction(u))
        rows.append(EffectiveRow(cells=graph.cells, rate=float((case.step(network)(u) - u) @ f / (f @ f))))
    return tuple(rows)


def errors_by_step(
    network: FluxNetwork, graph: DualGraph, parameters: Settings, steps: tuple[float, float], seed: int
) -> tuple[StepRow, ...]:
    """Errors of the network and of its integrator over the trained steps on one mesh, longest first."""
    rows = []
    for fourier in np.geomspace(steps[1], steps[0], STEPS):
        case = Case(graph, network.equation, parameters, float(fourier))
        network_step, plain = case.step(network), case.plain(network)
        for field in FIELDS:
            T = initial_field(graph, field, seed, network.equation)
            exact = case.resolve(T)
            ours, theirs = (relative_error(step(T), exact, T) for step in (network_step, plain))
            rows.append(StepRow(fourier=float(fourier), field=field, network=ours, midpoint=theirs))
    return tuple(rows)


def coefficient_points(
    network: FluxNetwork,
    graph: DualGraph,
    parameters: Settings,
    *,
    longest: float,
    formulas: Mapping[str, sp.Expr] | None,
) -> dict[str, CoefficientPoints]:
    """The coefficients of some faces of a mesh against Fo_P + Fo_N, over the trained steps, for a figure."""
    rng, used = np.random.default_rng(0), graph.slot_mask
    columns: dict[str, list[np.ndarray]] = {each.coefficient.name: [] for each in network.weighted}
    totals, drawn = [], {name: list[np.ndarray]() for name in columns}
    for share in (0.1, 0.3, 0.6, 1.0):
        case = Case(graph, network.equation, parameters, share * longest)
        numbers = face_numbers(network.equation, graph, case.dt, parameters=parameters)
        values = {symbol(name): each[used] for name, each in numbers.items()}
        kept = rng.permutation(int(used.sum()))[:POINTS]
        totals.append(numbers["total"][used][kept])
        found = face_coefficients(network, graph, case.dt, parameters=parameters)
        for name, coefficients in zip(columns, found, strict=True):
            columns[name].append(coefficients[used][kept])
            if formulas is not None:
                with np.errstate(all="ignore"):
                    by_formula = np.asarray(evaluate(formulas[name], values, np), float)
                drawn[name].append(np.broadcast_to(by_formula, used.sum())[kept])
    total = tuple(np.concatenate(totals).tolist())
    return {
        name: CoefficientPoints(
            total=total,
            network=tuple(np.concatenate(columns[name]).tolist()),
            formula=tuple(np.concatenate(drawn[name]).tolist()) if drawn[name] else (),
        )
        for name in columns
    }


def judge_network(
    rows: Sequence[CarryRow], steps: Sequence[StepRow], effective: Sequence[EffectiveRow]
) -> dict[str, bool]:
    """What must hold of a network, in words, and whether it does; an error that is not finite is none."""
    return {
        "no run of 1,000 steps blows up on unseen meshes": not any(row.blew_up for row in rows),
        "one step errs less than the integrator's on every unseen mesh": all(_is_better(row) for row in rows),
        "one step errs less than the integrator's at every step trained with": all(
            _is_better(row) or _at_most(row.network, NEGLIGIBLE) for row in steps
        ),
        "the total is conserved": all(_at_most(row.conserved, LARGEST_DEFECT) for row in rows),
        "smooth fields move at the equation's own rate as the mesh is refined": _at_most(
            abs(limit_rate(effective) - 1.0), LARGEST_OFF
        ),
    }


def judge_run(
    checks: Mapping[str, bool], certificate: Certificate | None, refusal: str | None
) -> tuple[str, tuple[str, ...]]:
    """An approximation where the network passes and formulas keep its gain and its equation, otherwise refused.

    `certificate` is that of the formulas; None if there are none.
    """
    checks = {**checks, f"formulas keep at least {LEAST_KEPT:.0%} of the gain": certificate is not None}
    if certificate is not None:
        systems = (certificate.semidiscrete, certificate.rate)
        right = all(found is None or found.holds for found in systems)
        checks["in the limit of small steps the formulas solve the equation, as their certificate has it"] = right
    reasons = tuple(f"{'yes' if holds else 'NO'}: {text}" for text, holds in checks.items())
    if refusal is not None:
        reasons = (*reasons, f"NO: {refusal}")
    return ("approximation" if all(checks.values()) else "refused"), reasons


def limit_rate(effective: Sequence[EffectiveRow]) -> float:
    """The rate in the limit of small squares, from the last two: Δt, and with it what is off, is of order h²."""
    before, last = (np.nan if row.rate is None else row.rate for row in effective[-2:])
    return float(last + (last - before) / 3)


def _is_better(row: CarryRow | StepRow) -> bool:
    return row.network is not None and row.midpoint is not None and bool(row.network < row.midpoint)


def _at_most(value: float | None, limit: float) -> bool:
    return value is not None and bool(value <= limit)
