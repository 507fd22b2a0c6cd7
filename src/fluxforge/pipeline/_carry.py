"""A network in the form of a flux on meshes that training did not see: errors, stability, the equation it solves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from scipy.optimize import minimize

from fluxforge import recipe
from fluxforge._types import CellField, SlotField
from fluxforge.certify._certificate import Certificate
from fluxforge.data._ensemble import smooth_field
from fluxforge.data._meshes import meshes
from fluxforge.data._problem import count_substeps
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._flux_form import FluxNetwork
from fluxforge.mesh._boundary import Dirichlet, Inflow, Neumann
from fluxforge.mesh._build import dual
from fluxforge.mesh._conditions import Conditions
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import squares
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameter_values import Curl
from fluxforge.mesh._parameters import Settings, reference_step
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.pde._parameter import Where
from fluxforge.run.carry import CarryRow, CoefficientPoints, EffectiveRow, StepRow
from fluxforge.run.result import list_reasons
from fluxforge.scheme._tableau import TABLEAUX
from fluxforge.stepping._field import cell_capacity
from fluxforge.stepping._frozen_flux import FrozenFlux, face_coefficients, face_numbers, freeze_flux

FIELDS = ("smooth", "noise")
LONG_RUN = 1_000
# Far from the seeds of training and of `evaluation`.
_SEED = 2 * 10**6
# Keeps the jumps of parameters apart from what else is drawn on a mesh.
_JUMPS = 11
# Tolerance of the resolved step: errors of a thousandth are measured to four digits.
_TOLERANCE = 1e-9
# A field counts as blown up where it exceeds so many times what initial values, sources and walls can explain.
_GROWTH = 10.0
MIXED: Conditions = {"left": Dirichlet(1.0), "right": Neumann(0.5), "bottom": Neumann(0.0), "top": Dirichlet(0.0)}
# Cells per side of squares, on which the two-point flux is consistent.
SIDES = (8, 16, 32, 64)
# Largest deviation from 1 of the rate of smooth fields, extrapolated to h = 0: the rest of order h⁴ is below a
# thousandth.
LARGEST_RATE_ERROR = 0.005
# The part of the network's gain over its integrator that a formula must keep.
LEAST_KEPT = 0.8
# Largest change of the total in a closed box, relative to it: sums over 100,000 cells round to 1e-13 of it.
LARGEST_DEFECT = 1e-11
# Relative to the change of a step: a network whose error is below this may err more than its integrator, as at short
# steps.
NEGLIGIBLE = 1e-3
# Steps across the trained range at which a network is held against its integrator.
STEPS = 4
# Steps at which coefficients are looked at, as shares of the longest.
STEP_SHARES = (0.1, 0.3, 0.6, 1.0)
# The numbers of faces by name, and the coefficients of every stage there, at one step.
FaceSample: TypeAlias = tuple[dict[str, np.ndarray], list[np.ndarray]]
# Faces of each step in the figure of the coefficients.
POINTS = 60


@lru_cache(maxsize=8)
def unseen_mesh(cells: int, seed: int) -> Mesh:
    """An irregular mesh of about that many cells."""
    wanted = recipe.Meshes(meshes=1, cells=(cells, cells), kinds=("irregular",))
    return meshes(wanted, seed + _SEED)[0]


@dataclass(frozen=True)
class Case:
    """One mesh at one step, with all that does not depend on the field."""

    graph: DualGraph
    equation: Equation
    parameters: Settings
    fourier: float

    @cached_property
    def dt(self) -> float:
        """Δt, in units of what passes through faces alone: it does not depend on the state."""
        still = replace(self.equation, reaction=sp.S.Zero)
        return self.fourier * reference_step(still, self.graph, self.parameters)

    def step(self, network: FluxNetwork) -> FrozenFlux:
        """The network's step."""
        return self.weigh_fluxes(network, face_coefficients(network, self.graph, self.dt, parameters=self.parameters))

    def weigh_fluxes(self, network: FluxNetwork, coefficients: Sequence[SlotField | float]) -> FrozenFlux:
        """The step of the network's integrator with other coefficients."""
        return freeze_flux(
            network.tableau,
            self.equation,
            self.graph,
            self.dt,
            coefficients,
            parameters=self.parameters,
            free=network.free,
        )

    def plain(self, network: FluxNetwork) -> FrozenFlux:
        """The step of the network's integrator itself."""
        return self.weigh_fluxes(network, [1.0] * len(network.weighted))

    def formula(self, network: FluxNetwork, formulas: Sequence[sp.Expr]) -> FrozenFlux:
        """The step with a formula of the faces' numbers in place of each MLP."""
        numbers = face_numbers(self.equation, self.graph, self.dt, parameters=self.parameters)
        values = {symbol(name): numbers[name] for name in numbers}
        with np.errstate(all="ignore"):
            coefficients = [
                np.broadcast_to(evaluate(each, values, np), self.graph.slot_mask.shape) for each in formulas
            ]
        return self.weigh_fluxes(network, [np.where(self.graph.slot_mask, each, 0.0) for each in coefficients])

    def resolve(self, T: CellField) -> CellField:
        """The field after Δt, by many substeps of the classical Runge–Kutta method."""
        real = self.equation.velocity is None
        rk4, substeps = TABLEAUX["rk4"], count_substeps(self.fourier, _TOLERANCE, real=real)
        fine = freeze_flux(
            rk4, self.equation, self.graph, self.dt / substeps, (1.0, 1.0, 1.0), parameters=self.parameters
        )
        return fine.repeat(T, substeps)


def initial_field(graph: DualGraph, kind: str, seed: int, equation: Equation = HEAT) -> CellField:
    """A smooth field that vanishes at the walls of the unit square, or white noise.

    From −1 to 1; from 0 to 1 where something reacts: beyond, solutions such as that of Fisher's equation blow up.
    """
    if kind == "noise":
        least = -1.0 if equation.reaction == 0 else 0.0
        return np.random.default_rng(seed).uniform(least, 1.0, graph.cells)
    with jax.enable_x64(True):
        waves = np.asarray(smooth_field(jax.random.key(seed), jnp.asarray(graph.x)))
    waves = waves if equation.reaction == 0 else (1.0 + waves) / 2
    return waves * np.prod(np.sin(np.pi * graph.x), axis=1)


def mesh_parameters(
    equation: Equation, values: Mapping[str, recipe.Value], graph: DualGraph, *, jumps: float, seed: int
) -> Settings:
    """The parameters on one mesh: those given per cell times factors of up to `jumps` either way, cell by cell."""
    parameters: dict[str, Any] = dict(values)
    rng = np.random.default_rng([seed, _JUMPS])
    for p in equation.parameters:
        if p.where is Where.CELL and jumps > 1:
            factor = np.exp(rng.uniform(-1.0, 1.0, graph.cells) * np.log(jumps))
            value = np.asarray(values[p.name], float)
            parameters[p.name] = factor.reshape(-1, *[1] * value.ndim) * value
    return parameters


def mixed_walls(equation: Equation) -> Conditions:
    """Dirichlet, Neumann and insulated walls of a square; inflow values where nothing diffuses."""
    if equation.diffusion == 0:
        return {"left": Inflow(1.0), "right": Inflow(0.0), "bottom": Inflow(0.5), "top": Inflow(0.0)}
    return MIXED


def relative_error(new: CellField, exact: CellField, T: CellField) -> float:
    """Mean |difference| over mean |change|."""
    return float(np.abs(new - exact).mean() / np.abs(exact - T).mean())


def best_constants(network: FluxNetwork, case: Case, T: CellField, exact: CellField) -> float:
    """The least error of fixed coefficients, one a stage, chosen for this very field."""

    def error(c: np.ndarray) -> float:
        return relative_error(case.weigh_fluxes(network, [float(each) for each in c])(T), exact, T)

    start = np.ones(len(network.weighted))
    minimum = minimize(error, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-9, "maxiter": 400})
    return float(min(minimum.fun, error(start)))


def blows_up(network: FluxNetwork, mesh: Mesh, T: CellField, case: Case, fourier: float) -> bool:
    """Whether 1,000 steps at a Fourier number exceed all bounds: with T = 0 at the walls, or with source and walls."""
    for boundary, size in ((None, 0.0), (mixed_walls(case.equation), 1.0)):
        graph = dual(mesh, boundary, equation=case.equation)
        # A step that suits a mesh whose whole boundary is held, as in training.
        dt = fourier / case.fourier * case.dt
        coefficients = face_coefficients(network, graph, dt, parameters=case.parameters)
        S = np.full(graph.cells, size)
        step = freeze_flux(
            network.tableau,
            case.equation,
            graph,
            dt,
            coefficients,
            parameters=case.parameters,
            source=S,
            free=network.free,
        )
        bound = _GROWTH * (np.abs(T).max() + np.abs(graph.value).max() * (1.0 + size) + LONG_RUN * dt * size)
        last = step.repeat(T, LONG_RUN)
        if not (np.abs(last) <= bound).all():
            return True
    return False


def conservation_defect(network: FluxNetwork, mesh: Mesh, T: CellField, case: Case) -> float:
    """|Σ c V u' − Σ c V u| over Σ c V |u| of one step in a closed box, without reaction: transport goes in circles."""
    graph, parameters, velocity = dual(mesh, Neumann()), dict(case.parameters), case.equation.velocity
    if velocity is not None:
        speed = float(np.linalg.norm(np.asarray(parameters[velocity], float)))
        parameters[velocity] = Curl(f"{speed / np.pi:.17g}*sin(pi*x)*sin(pi*y)")
    closed = Case(graph, case.equation, parameters, case.fourier)
    step = replace(closed.step(network), reaction=None)
    mass = graph.V * cell_capacity(case.equation, graph, parameters)
    return float(abs(mass @ (step(T) - T)) / (mass @ np.abs(T)))


def measure_carry(
    network: FluxNetwork,
    *,
    parameters: Mapping[str, recipe.Value],
    seed: int,
    longest: float,
    jumps: float,
    formulas: Sequence[sp.Expr] | None,
    cells: Sequence[int],
    fourier: float,
) -> Iterator[CarryRow]:
    """One row per mesh and field, from the smallest mesh to the largest."""
    for count in cells:
        mesh = unseen_mesh(count, seed)
        graph = dual(mesh)
        mesh_values = mesh_parameters(network.equation, parameters, graph, jumps=jumps, seed=seed)
        case = Case(graph, network.equation, mesh_values, fourier)
        step, plain = case.step(network), case.plain(network)
        short = None if formulas is None else case.formula(network, formulas)
        for field in FIELDS:
            T = initial_field(case.graph, field, seed, network.equation)
            exact = case.resolve(T)
            yield CarryRow(
                cells=case.graph.cells,
                field=field,
                fourier=fourier,
                network=relative_error(step(T), exact, T),
                midpoint=relative_error(plain(T), exact, T),
                constants=best_constants(network, case, T, exact) if len(network.weighted) <= 3 else None,
                formula=None if short is None else relative_error(short(T), exact, T),
                blew_up=blows_up(network, mesh, T, case, longest),
                conserved=conservation_defect(network, mesh, T, case),
            )


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


def sample_faces(
    network: FluxNetwork, graph: DualGraph, parameters: Settings, *, longest: float
) -> Iterator[FaceSample]:
    """The faces of every cell of a mesh, at steps up to the longest."""
    used = graph.slot_mask
    for share in STEP_SHARES:
        dt = Case(graph, network.equation, parameters, share * longest).dt
        numbers = face_numbers(network.equation, graph, dt, parameters=parameters)
        coefficients = face_coefficients(network, graph, dt, parameters=parameters)
        yield {name: each[used] for name, each in numbers.items()}, [each[used] for each in coefficients]


def coefficient_points(
    network: FluxNetwork,
    graph: DualGraph,
    parameters: Settings,
    *,
    longest: float,
    formulas: Mapping[str, sp.Expr] | None,
) -> dict[str, CoefficientPoints]:
    """The coefficients of some faces of a mesh against Fo_P + Fo_N, over the trained steps, for a figure."""
    rng = np.random.default_rng(0)
    columns: dict[str, list[np.ndarray]] = {each.coefficient.name: [] for each in network.weighted}
    totals, drawn = [], {name: list[np.ndarray]() for name in columns}
    for numbers, by_stage in sample_faces(network, graph, parameters, longest=longest):
        values = {symbol(name): each for name, each in numbers.items()}
        faces = len(numbers["total"])
        kept = rng.permutation(faces)[:POINTS]
        totals.append(numbers["total"][kept])
        for name, coefficients in zip(columns, by_stage, strict=True):
            columns[name].append(coefficients[kept])
            if formulas is not None:
                with np.errstate(all="ignore"):
                    by_formula = np.asarray(evaluate(formulas[name], values, np), float)
                drawn[name].append(np.broadcast_to(by_formula, faces)[kept])
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
    """The conditions on a network, in words, and whether each holds; one on an error that is not finite does not."""
    return {
        "no run of 1,000 steps blows up on unseen meshes": not any(row.blew_up for row in rows),
        "one step errs less than the integrator's on every unseen mesh": all(_is_better(row) for row in rows),
        "one step errs less than the integrator's at every step trained with": all(
            _is_better(row) or _is_at_most(row.network, NEGLIGIBLE) for row in steps
        ),
        "the total is conserved": all(_is_at_most(row.conserved, LARGEST_DEFECT) for row in rows),
        "smooth fields move at the equation's own rate as the mesh is refined": _is_at_most(
            abs(limit_rate(effective) - 1.0), LARGEST_RATE_ERROR
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
        right = all(system is None or system.holds for system in systems)
        checks["in the limit of small steps the formulas solve the equation, as their certificate has it"] = right
    reasons = list_reasons(checks)
    if refusal is not None:
        reasons = (*reasons, f"NO: {refusal}")
    return ("approximation" if all(checks.values()) else "refused"), reasons


def limit_rate(effective: Sequence[EffectiveRow]) -> float:
    """The rate in the limit of small squares, from the last two: Δt, and with it what is off, is of order h²."""
    before, last = (np.nan if row.rate is None else row.rate for row in effective[-2:])
    return float(last + (last - before) / 3)


def _is_better(row: CarryRow | StepRow) -> bool:
    return row.network is not None and row.midpoint is not None and bool(row.network < row.midpoint)


def _is_at_most(value: float | None, limit: float) -> bool:
    return value is not None and bool(value <= limit)
