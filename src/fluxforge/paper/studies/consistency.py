"""The equations that the schemes solve: diffusivities and steady errors under refinement, and Crank–Nicolson's sign."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import numpy as np
import sympy as sp
from msgspec import Struct

from fluxforge.certify._families import PERIODS, default_graph
from fluxforge.certify._studies import Rates
from fluxforge.certify.effective import fitted_diffusion, lattice_diffusion
from fluxforge.certify.modified import modified_equation
from fluxforge.certify.order import measure_steady_errors, measure_time_order
from fluxforge.certify.stability import measure_stability
from fluxforge.mesh._generate import FAMILIES
from fluxforge.mesh._generate_gmsh import gmsh_problem
from fluxforge.mesh._mesh import Mesh
from fluxforge.paper.studies._measures import make_irregular
from fluxforge.paper.studies._records import Claim, StudyConfig, to_number, to_verdict
from fluxforge.paper.studies._tasks import open_measurements
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping._assemble import operator

NAME = "consistency"
STEADY_SCHEMES = ("euler", "corrected", "two-hop-printed")
DIFFUSING = ("euler", "two-hop", "two-hop-printed")
IMPLICIT = ("crank-nicolson", "crank-nicolson-printed")
# Irregular meshes are made by two generators: those of the built-in one are equal on all machines, and neighbouring
# cells are more similar in them.
GMSH = "irregular (gmsh)"
# Values of n by preset and family: meshes have n² squares or 2n² triangles.
SIZES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "quick": {
        "squares": (8, 16, 32, 64),
        "equilateral": (6, 12, 24, 45),
        "right": (6, 12, 24, 45),
        "jittered": (6, 12, 24, 45),
        "irregular": (6, 12, 24, 45),
        GMSH: (6, 12, 24, 45),
    },
    "paper": {
        "squares": (10, 20, 50, 100, 200),
        "equilateral": (9, 18, 36, 72, 141),
        "right": (10, 20, 50, 100, 141),
        "jittered": (9, 18, 36, 72, 141),
        "irregular": (9, 18, 36, 72, 141),
        GMSH: (9, 18, 36, 72, 141),
    },
}
SEEDS = (1, 2, 3, 4, 5)
# Values of Δt λ, λ the rate of a mode, at which the growth factor of one step is computed.
STEPS = (0.01, 0.1, 1.0, 10.0, 100.0)
# Largest difference of a measured order from the claimed one, in time and in space.
TIME_TOLERANCE, SPACE_TOLERANCE = 0.1, 0.15
# An error counts as stagnant if its rate at the last refinement is below this.
PLATEAU_RATE = 0.15
# A scheme solves the given heat equation if all principal diffusivities differ from α by at most this share.
CONSISTENT = 0.05


class Tensor(Struct, frozen=True):
    """An effective diffusivity over α: entries K, principal values, their mean and their largest distance from 1."""

    K: list[list[float]]
    principal: list[float]
    mean: float
    off: float


class Steady(Struct, frozen=True):
    """Relative L2 errors of steady states under refinement, the rates between them, and the order or None."""

    errors: list[float]
    rates: list[float | None]
    order: float | None


class Family(Struct, frozen=True):
    """A family of meshes from coarse to fine: by scheme, the steady errors, and the diffusivity on every mesh.

    `lattice` is the exact diffusivity of the infinite lattice, None for families that are not periodic.
    """

    cells: list[int]
    h: list[float]
    steady: dict[str, Steady]
    diffusivity: dict[str, list[Tensor | None]]
    lattice: dict[str, Tensor] | None


class Implicit(Struct, frozen=True):
    """A form of Crank–Nicolson: R(z), where it is stable, growth |R| at Δt λ of `steps`, diffusivity, and source.

    `source` is the part of a source term that a step adds: 1 for a consistent scheme.
    """

    factor: str
    stable: str
    steps: list[float]
    growth: list[float]
    diffusivity: Tensor
    source: float


class Algebra(Struct, frozen=True):
    """Results without refinement: orders in time, modified equations on squares, and both forms of Crank–Nicolson."""

    time_order: dict[str, float | None]
    equations: dict[str, str]
    crank_nicolson: dict[str, Implicit]


class Result(Struct, frozen=True):
    """The result of the study."""

    experiment: str
    preset: str
    families: dict[str, Family]
    time_order: dict[str, float | None]
    equations: dict[str, str]
    crank_nicolson: dict[str, Implicit]
    choices: dict[str, str]


@dataclass(frozen=True)
class Config(StudyConfig):
    """Families with the n of their refinements, and seeds of the random families; `changes` have no effect here."""

    sizes: Mapping[str, tuple[int, ...]] | None = None
    seeds: tuple[int, ...] = SEEDS

    @property
    def families(self) -> Mapping[str, tuple[int, ...]]:
        """The values of n by family: `sizes` if given, otherwise those of the preset."""
        return SIZES[self.preset] if self.sizes is None else self.sizes


def run(config: Config, folder: Path, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """Measure all families, and analyse the schemes algebraically; measurements stored in the folder are read."""
    families = dict(config.families)
    if GMSH in families and (problem := gmsh_problem()) is not None:
        warn(f"irregular meshes of gmsh are left out: {problem}")
        del families[GMSH]
    total = sum(len(sizes) for sizes in families.values()) + 1
    measured: dict[str, Family] = {}
    done = 0
    with jax.enable_x64(True), open_measurements(folder, warn) as held:
        for family, sizes in families.items():
            seeds = config.seeds if family not in PERIODS else config.seeds[:1]
            words = {"task": NAME, "family": family, "sizes": list(sizes), "seeds": list(seeds)}
            measure = partial(_measure_family, family, sizes, seeds=seeds, tell=tell, done=done, total=total)
            measured[family] = held.measure_once(f"consistency, {family}", words, Family, measure)
            done += len(sizes)
        tell("equations and growth", total - 1, total)
        algebra = held.measure_once(
            "consistency, algebra", {"task": NAME, "steps": list(STEPS)}, Algebra, _measure_algebra
        )
    tell("done", total, total)
    return Result(NAME, config.preset, measured, algebra.time_order, algebra.equations, algebra.crank_nicolson, CHOICES)


CHOICES = {
    "steady": "relative L2 error of the steady state of −∇²u = S, u = sin πx sin πy given on the boundary; root mean "
    "square over the seeds of a random family",
    "diffusivity": "K/α of a lattice exactly, from one period; of a mesh of the unit square by the weak form of its "
    "steady states; on random families of the first seed",
    "h": "1/√cells",
    "equations": "what smooth solutions obey on squares of side h, by exact Taylor expansion",
}


def _measure_family(
    family: str, sizes: tuple[int, ...], *, seeds: tuple[int, ...], tell: Progress, done: int, total: int
) -> Family:
    """Steady errors and diffusivities by scheme, and the diffusivity of the infinite lattice of a periodic family.

    `done` meshes of `total` were measured before, for the progress.
    """
    cells: list[int] = []
    errors: dict[str, list[float]] = {name: [] for name in STEADY_SCHEMES}
    diffusivity: dict[str, list[Tensor | None]] = {name: [] for name in DIFFUSING}
    # The weak form is posed on the unit square, but the domain of equilateral triangles is a rhombus.
    fits = family != "equilateral"
    for k, n in enumerate(sizes):
        tell(f"{family}, n = {n}", done + k, total)
        # Every mesh is made once and used for all schemes.
        meshes = [make_mesh(family, n, seed) for seed in seeds]
        cells.append(round(float(np.mean([len(mesh.cells) for mesh in meshes]))))
        for name in STEADY_SCHEMES:
            by_seed = np.array([measure_steady_errors(BUILT_IN[name], mesh)[0] for mesh in meshes])
            errors[name].append(float(np.sqrt(np.mean(by_seed**2))))
        for name in DIFFUSING:
            diffusivity[name].append(_make_tensor(fitted_diffusion(BUILT_IN[name], meshes[0])) if fits else None)
    h = [count**-0.5 for count in cells]
    lattice = None
    if family in PERIODS:
        lattice = {name: _make_tensor(lattice_diffusion(BUILT_IN[name], family)) for name in DIFFUSING}
    return Family(cells, h, {name: _fit_rates(h, errors[name]) for name in STEADY_SCHEMES}, diffusivity, lattice)


def _make_tensor(K: np.ndarray) -> Tensor:
    """The record of a tensor K/α with its principal values, their mean, and their largest distance from 1."""
    low, high = (float(value) for value in np.linalg.eigvalsh(K))
    return Tensor(K.tolist(), [low, high], 0.5 * (low + high), max(abs(low - 1), abs(high - 1)))


def make_mesh(family: str, n: int, seed: int) -> Mesh:
    """One mesh of a family; an unstructured one has about 2n² cells, as many as the structured triangles."""
    if family not in ("irregular", GMSH):
        return FAMILIES[family](n, seed)
    return make_irregular(2 * n * n, seed, "gmsh" if family == GMSH else "builtin")


def _fit_rates(h: Sequence[float], errors: list[float]) -> Steady:
    rates = Rates(tuple(h), tuple(errors))
    return Steady(errors, [to_number(rate) for rate in rates.rates], rates.order)


def _measure_algebra() -> Algebra:
    """Order in time, modified equations on squares, and both forms of Crank–Nicolson."""
    return Algebra(
        {"euler": measure_time_order(BUILT_IN["euler"]).order},
        {name: str(modified_equation(BUILT_IN[name], "squares")) for name in (*IMPLICIT, "euler", "two-hop-printed")},
        {name: _measure_implicit(name) for name in IMPLICIT},
    )


def _measure_implicit(name: str) -> Implicit:
    """Analyse a form of Crank–Nicolson on the default graph: R(z), stability, growth, diffusivity, source."""
    scheme, graph = BUILT_IN[name], default_graph()
    stability = measure_stability(scheme, graph)
    assert stability.factor is not None
    assert stability.dt_max is not None
    (z,) = stability.factor.free_symbols
    factors = [abs(stability.factor.subs(z, -sp.Rational(str(step)))) for step in STEPS]
    share = abs(operator(scheme, graph, dt=graph.V.min()).N).sum() / (graph.V.min() * graph.cells)
    longest = stability.dt_max
    return Implicit(
        factor=str(stability.factor),
        stable="at every step" if math.isinf(longest) else "at short steps" if longest else "at no step",
        steps=list(STEPS),
        growth=[float(value) for value in factors],
        diffusivity=_make_tensor(lattice_diffusion(scheme, "squares")),
        source=float(share),
    )


def judge(result: Result) -> list[Claim]:
    """The claims of the paper about consistency, judged from the numbers alone."""
    return [_judge_first_order(result), _judge_two_hop(result), _judge_crank_nicolson(result)]


def _judge_first_order(result: Result) -> Claim:
    """Holds if order 1 is measured in time and, on every family, in space; under a condition if on some families."""
    time = result.time_order["euler"]
    in_time = time is not None and abs(time - 1.0) <= TIME_TOLERANCE
    orders = {name: family.steady["euler"].order for name, family in result.families.items()}
    first = {name: order is not None and abs(order - 1.0) <= SPACE_TOLERANCE for name, order in orders.items()}
    parts = [f"{name} {_describe_convergence(family)}" for name, family in result.families.items()]
    count = sum(first.values())
    summary = f"{count} of {len(first)} families have order 1" if count else "no family has order 1"
    evidence = (
        f"order {'none' if time is None else f'{time:.2f}'} in time; in space {summary}. Relative L2 error of steady "
        f"states on the finest meshes: {'; '.join(parts)}"
    )
    text = "This update rule corresponds to a first-order accurate FV discretizations in both time and space"
    verdict = to_verdict(in_time and bool(first) and all(first.values()), in_time and any(first.values()))
    return Claim("consistency-first-order", text, verdict, evidence)


def _describe_convergence(family: Family) -> str:
    """A text on the order, or the stagnant error, of the plain flux, and the order of the corrected one."""
    plain, corrected = family.steady["euler"], family.steady["corrected"]
    rates = ", ".join("none" if rate is None else f"{rate:.2f}" for rate in plain.rates)
    where = f"{plain.errors[-1]:.2g} on {family.cells[-1]:,} cells"
    if plain.order is not None:
        order_text = f"order {plain.order:.2f} ({where})"
    elif plain.rates and plain.rates[-1] is not None and plain.rates[-1] < PLATEAU_RATE:
        order_text = f"stays at {where} (rates {rates})"
    else:
        order_text = f"no settled order, {where} (rates {rates})"
    other = "none" if corrected.order is None else f"{corrected.order:.2f}"
    return f"{order_text}, corrected flux order {other} ({corrected.errors[-1]:.2g})"


def _judge_two_hop(result: Result) -> Claim:
    """Holds if on all families the diffusivity is α and the steady error at most that of one hop."""
    good, parts = [], []
    for name, family in result.families.items():
        K, plain = _find_finest_diffusivity(family, "two-hop-printed"), _find_finest_diffusivity(family, "euler")
        error, peer = (family.steady[scheme].errors[-1] for scheme in ("two-hop-printed", "euler"))
        good.append(K.off <= CONSISTENT and error <= peer)
        ours, theirs = _format_principal(K), _format_principal(plain)
        parts.append(f"{name} {ours} (one hop {theirs}), error {error:.2g} (one hop {peer:.2g})")
    evidence = (
        f"on squares it solves {result.equations['two-hop-printed']}; principal values of K/α, as printed: "
        + "; ".join(parts)
    )
    text = (
        "[The correction term based on 2-hop neighbours] acts as a discrete approximation to higher-order spatial "
        "derivatives, improving the accuracy of the simulation"
    )
    return Claim("consistency-two-hop", text, to_verdict(bool(good) and all(good), any(good)), evidence)


def _find_finest_diffusivity(family: Family, name: str) -> Tensor:
    """The diffusivity of the infinite lattice of a family, or of its finest mesh if it is not periodic."""
    tensor = family.diffusivity[name][-1] if family.lattice is None else family.lattice[name]
    assert tensor is not None  # it is None only on meshes of equilateral triangles, which have a lattice
    return tensor


def _format_principal(K: Tensor) -> str:
    low, high = (f"{value:.2f}" for value in K.principal)
    return low if low == high else f"{low} and {high}"


def _judge_crank_nicolson(result: Result) -> Claim:
    """Holds if the printed form diffuses with α, is stable for all Δt and adds the source; without it, conditional."""
    printed, right = result.crank_nicolson["crank-nicolson-printed"], result.crank_nicolson["crank-nicolson"]
    diffuses = printed.diffusivity.off <= CONSISTENT and printed.stable == "at every step"
    has_source = abs(printed.source - right.source) <= CONSISTENT
    growth = ", ".join(f"{value:.3g} at {step:g}" for step, value in zip(printed.steps, printed.growth, strict=True))
    evidence = (
        f"R(z) = {printed.factor}, where Crank–Nicolson has {right.factor}; stable {printed.stable}: a mode of "
        f"rate λ grows by |R| = {growth} (Δt λ); on squares it solves "
        f"{result.equations['crank-nicolson-printed']}, K/α = {_format_principal(printed.diffusivity)}; "
        f"a step adds {printed.source:.0%} of the source"
    )
    text = "a second-order Crank–Nicolson formulation: V_P (T_P′ − T_P)/Δt + α Σ_N A/δ (T_N − T_P) at n + ½ = 0"
    return Claim("consistency-crank-nicolson", text, to_verdict(diffuses and has_source, diffuses), evidence)
