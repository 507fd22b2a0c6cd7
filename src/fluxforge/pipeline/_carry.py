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
# Added to the seed of a recipe, so that these meshes are not those of training or of `evaluation`.
_SEED = 2 * 10**6
# Second word of the seed of the jumps of parameters, so that they are independent of other draws with the same seed.
_JUMPS = 11
# Tolerance of the resolved step: errors of a thousandth are measured to four digits.
_TOLERANCE = 1e-9
# A run has blown up if |u| exceeds the bound by initial values, sources and walls by more than this factor.
_GROWTH = 10.0
MIXED: Conditions = {"left": Dirichlet(1.0), "right": Neumann(0.5), "bottom": Neumann(0.0), "top": Dirichlet(0.0)}
# Cells per side of squares, on which the two-point flux is consistent.
SIDES = (8, 16, 32, 64)
# Largest deviation from 1 of the rate of smooth fields, extrapolated to h = 0: the rest of order h⁴ is below a
# thousandth.
LARGEST_RATE_ERROR = 0.005
# The least share of the network's gain over its integrator that the formulas must keep to be accepted.
LEAST_KEPT = 0.8
# Largest change of the total in a closed box, relative to it: sums over 100,000 cells round to 1e-13 of it.
LARGEST_DEFECT = 1e-11
# An error below this, relative to the change of a step, passes even if the integrator's is smaller, as it is at short
# steps.
NEGLIGIBLE = 1e-3
# Number of time steps across the trained range at which a network is compared with its integrator.
STEPS = 4
# Time steps at which coefficients are sampled, as shares of the longest.
STEP_SHARES = (0.1, 0.3, 0.6, 1.0)
# At one time step: the dimensionless numbers of the faces by name, and per weighted stage the coefficients there.
FaceSample: TypeAlias = tuple[dict[str, np.ndarray], list[np.ndarray]]
# Number of faces per time step in the figure of the coefficients.
POINTS = 60


@lru_cache(maxsize=8)
def unseen_mesh(cells: int, seed: int) -> Mesh:
    """An irregular mesh of about `cells` cells that training and `evaluation` do not use."""
    wanted = recipe.Meshes(meshes=1, cells=(cells, cells), kinds=("irregular",))
    return meshes(wanted, seed + _SEED)[0]


@dataclass(frozen=True)
class Case:
    """A mesh, the equation with its parameters there, and a time step of `fourier` reference steps."""

    graph: DualGraph
    equation: Equation
    parameters: Settings
    fourier: float

    @cached_property
    def dt(self) -> float:
        """Δt, from the reference step without the reaction, which would make it depend on the state."""
        still = replace(self.equation, reaction=sp.S.Zero)
        return self.fourier * reference_step(still, self.graph, self.parameters)

    def step(self, network: FluxNetwork) -> FrozenFlux:
        """The step u ↦ u' of the network."""
        return self.weigh_fluxes(network, face_coefficients(network, self.graph, self.dt, parameters=self.parameters))

    def weigh_fluxes(self, network: FluxNetwork, coefficients: Sequence[SlotField | float]) -> FrozenFlux:
        """The step of the network's integrator with given coefficients: per stage a field over slots or a number."""
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
        """The step of the network's integrator without learned coefficients: all are 1."""
        return self.weigh_fluxes(network, [1.0] * len(network.weighted))

    def formula(self, network: FluxNetwork, formulas: Sequence[sp.Expr]) -> FrozenFlux:
        """The step with a formula of the faces' dimensionless numbers in place of each MLP."""
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
    """Initial values of `kind` "noise", independent per cell, or "smooth", zero at the walls of the unit square.

    They lie in [−1, 1]; of an equation with a reaction in [0, 1], since solutions of Fisher's equation with negative
    initial values blow up.
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
    """The parameters on one mesh; those given per cell are multiplied by random factors in [1/jumps, jumps]."""
    parameters: dict[str, Any] = dict(values)
    rng = np.random.default_rng([seed, _JUMPS])
    for p in equation.parameters:
        if p.where is Where.CELL and jumps > 1:
            factor = np.exp(rng.uniform(-1.0, 1.0, graph.cells) * np.log(jumps))
            value = np.asarray(values[p.name], float)
            parameters[p.name] = factor.reshape(-1, *[1] * value.ndim) * value
    return parameters


def mixed_walls(equation: Equation) -> Conditions:
    """Dirichlet, Neumann and insulated walls of the unit square; of an equation without diffusion, inflow walls."""
    if equation.diffusion == 0:
        return {"left": Inflow(1.0), "right": Inflow(0.0), "bottom": Inflow(0.5), "top": Inflow(0.0)}
    return MIXED


def relative_error(new: CellField, exact: CellField, T: CellField) -> float:
    """Mean |difference| over mean |change|."""
    return float(np.abs(new - exact).mean() / np.abs(exact - T).mean())


def best_constants(network: FluxNetwork, case: Case, T: CellField, exact: CellField) -> float:
    """The least relative error that one fixed coefficient per stage can have for this field, found by Nelder–Mead."""

    def error(c: np.ndarray) -> float:
        return relative_error(case.weigh_fluxes(network, [float(each) for each in c])(T), exact, T)

    start = np.ones(len(network.weighted))
    minimum = minimize(error, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-9, "maxiter": 400})
    return float(min(minimum.fun, error(start)))


def blows_up(network: FluxNetwork, mesh: Mesh, T: CellField, case: Case, fourier: float) -> bool:
    """Whether 1,000 steps of `fourier` reference steps blow up, with T = 0 at the walls or mixed walls and S = 1."""
    for boundary, size in ((None, 0.0), (mixed_walls(case.equation), 1.0)):
        graph = dual(mesh, boundary, equation=case.equation)
        # Both runs have the Δt of the graph whose walls are all Dirichlet, as in training.
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
    """|Σ c V u' − Σ c V u| over Σ c V |u| of one step in a closed box, without reaction.

    A constant velocity is replaced by a vortex of that speed, which does not cross the walls.
    """
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
    """Errors on unseen meshes of `cells` cells each: one row per mesh and kind of field, in the order of `cells`."""
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
    """The rate of a step of a smooth field relative to ∂u/∂t = f(u), on n × n squares for each n of `sides`.

    It is ⟨u' − u, Δt f⟩/⟨Δt f, Δt f⟩; for heat, the effective diffusivity over α. Δt is `fourier` reference steps, so
    that it tends to 0 with h; the rate then tends to 1 if the step is consistent with the equation.
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
    """Errors of network and integrator on one mesh at time steps across the trained range `steps`, longest first."""
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
    """Dimensionless numbers and coefficients in all used slots of a mesh, at several time steps up to `longest`."""
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
    """Coefficients of randomly chosen faces against Fo_P + Fo_N at several time steps up to `longest`, for a figure."""
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
    """Whether each condition on a network holds, by its text; a condition on an error that is not finite fails."""
    return {
        "no run of 1,000 steps blows up on unseen meshes": not any(row.blew_up for row in rows),
        "the error of one step is below the integrator's on every unseen mesh": all(_is_better(row) for row in rows),
        f"the error of one step is below the integrator's, or at most {NEGLIGIBLE:g}, at {STEPS} time steps across the "
        "trained range": all(_is_better(row) or _is_at_most(row.network, NEGLIGIBLE) for row in steps),
        "the total is conserved": all(_is_at_most(row.conserved, LARGEST_DEFECT) for row in rows),
        "under refinement, the rate of change of smooth fields converges to the equation's": _is_at_most(
            abs(limit_rate(effective) - 1.0), LARGEST_RATE_ERROR
        ),
    }


def judge_run(
    checks: Mapping[str, bool], certificate: Certificate | None, refusal: str | None
) -> tuple[str, tuple[str, ...]]:
    """The verdict of a run and its reasons, one line per condition.

    "approximation" if all `checks` of the network hold and the formulas keep its gain and solve the equation, otherwise
    "refused". `certificate` is that of the formulas; None if there are none.
    """
    checks = {**checks, f"formulas keep at least {LEAST_KEPT:.0%} of the network's gain": certificate is not None}
    if certificate is not None:
        systems = (certificate.semidiscrete, certificate.rate)
        right = all(system is None or system.holds for system in systems)
        checks["in the limit of small steps the formulas solve the equation, according to their certificate"] = right
    reasons = list_reasons(checks)
    if refusal is not None:
        reasons = (*reasons, f"NO: {refusal}")
    return ("approximation" if all(checks.values()) else "refused"), reasons


def limit_rate(effective: Sequence[EffectiveRow]) -> float:
    """The rate as h → 0, extrapolated from the two finest meshes: Δt, and so the error of the rate, is of order h²."""
    before, last = (np.nan if row.rate is None else row.rate for row in effective[-2:])
    return float(last + (last - before) / 3)


def _is_better(row: CarryRow | StepRow) -> bool:
    return row.network is not None and row.midpoint is not None and bool(row.network < row.midpoint)


def _is_at_most(value: float | None, limit: float) -> bool:
    return value is not None and bool(value <= limit)
