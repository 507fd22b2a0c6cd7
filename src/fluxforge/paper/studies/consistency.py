"""Which equation the schemes solve: diffusivities and steady errors under refinement, and Crank–Nicolson's sign."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import jax
import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge.certify._families import PERIODS, default_graph
from fluxforge.certify._studies import Rates
from fluxforge.certify.effective import fitted_diffusion, lattice_diffusion
from fluxforge.certify.modified import square_equation
from fluxforge.certify.order import measure_steady_errors, measure_time_order
from fluxforge.certify.stability import measure_stability
from fluxforge.data._meshes import generate_meshes
from fluxforge.mesh import FAMILIES
from fluxforge.mesh._generate_gmsh import gmsh_problem
from fluxforge.mesh._mesh import Mesh
from fluxforge.paper.studies._consistency_result import Algebra, Family, Implicit, Result, Steady, Tensor, judge
from fluxforge.paper.studies._records import open_measurements
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping._assemble import operator

__all__ = ["Config", "Result", "judge", "run"]

NAME = "consistency"
STEADY = ("euler", "corrected", "two-hop-printed")
DIFFUSING = ("euler", "two-hop", "two-hop-printed")
IMPLICIT = ("crank-nicolson", "crank-nicolson-printed")
# Irregular meshes come from two generators: built-in ones are the same everywhere, and more alike locally.
GMSH = "irregular (gmsh)"
# n of the families: n² squares, 2n² triangles.
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
# Δt λ at which the growth of one step is computed, λ the rate of a mode.
STEPS = (0.01, 0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True)
class Config:
    """Families and the n they are refined through; seeds of the random ones. Recipes' `changes` change nothing here."""

    preset: str = "quick"
    changes: recipe.Changes = field(default_factory=dict)
    sizes: Mapping[str, tuple[int, ...]] | None = None
    seeds: tuple[int, ...] = SEEDS

    @property
    def families(self) -> Mapping[str, tuple[int, ...]]:
        """The sizes given, or the preset's."""
        return SIZES[self.preset] if self.sizes is None else self.sizes


def run(config: Config, folder: Path | None = None, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """Family by family; measurements that the folder holds are read."""
    families = dict(config.families)
    if GMSH in families and (problem := gmsh_problem()) is not None:
        warn(f"irregular meshes of gmsh are left out: {problem}")
        del families[GMSH]
    total = sum(len(sizes) for sizes in families.values()) + 1
    found: dict[str, Family] = {}
    done = 0
    with jax.enable_x64(True), open_measurements(None if folder is None else folder / "grid", warn) as held:
        for family, sizes in families.items():
            seeds = config.seeds if family not in PERIODS else config.seeds[:1]
            words = {"task": NAME, "family": family, "sizes": list(sizes), "seeds": list(seeds)}
            told = partial(_tell_after, tell, done, total)
            measure = partial(_family, family, sizes, seeds=seeds, tell=told)
            found[family] = held.measure_once(f"consistency, {family}", words, Family, measure)
            done += len(sizes)
        tell("equations and growth", total - 1, total)
        algebra = held.measure_once("consistency, algebra", {"task": NAME, "steps": list(STEPS)}, Algebra, _algebra)
    tell("done", total, total)
    return Result(NAME, config.preset, found, algebra.time_order, algebra.equations, algebra.crank_nicolson, CHOICES)


def _tell_after(tell: Progress, before: int, total: int, what: str, done: int) -> None:
    tell(what, before + done, total)


CHOICES = {
    "steady": "relative L2 error of the steady state of −∇²u = S, u = sin πx sin πy given on the boundary; root mean "
    "square over the seeds of a random family",
    "diffusivity": "K/α of a lattice exactly, from one period; of a mesh of the unit square by the weak form of its "
    "steady states; on random families of the first seed",
    "h": "1/√cells",
    "equations": "what smooth solutions obey on squares of side h, by exact Taylor expansion",
}


def _family(family: str, sizes: tuple[int, ...], *, seeds: tuple[int, ...], tell: Callable[[str, int], None]) -> Family:
    """Errors and diffusivities by scheme, and the diffusivity of the infinite lattice where there is one."""
    cells: list[int] = []
    errors: dict[str, list[float]] = {name: [] for name in STEADY}
    diffusivity: dict[str, list[Tensor | None]] = {name: [] for name in DIFFUSING}
    # The weak form is posed on the unit square, which the rhombus of equilateral triangles is not.
    fits = family != "equilateral"
    for k, n in enumerate(sizes):
        tell(f"{family}, n = {n}", k)
        # Every mesh is made once, and given to every scheme.
        meshes = [mesh_of(family, n, seed) for seed in seeds]
        cells.append(round(float(np.mean([len(mesh.cells) for mesh in meshes]))))
        for name in STEADY:
            found = np.array([measure_steady_errors(BUILT_IN[name], mesh)[0] for mesh in meshes])
            errors[name].append(float(np.sqrt(np.mean(found**2))))
        for name in DIFFUSING:
            diffusivity[name].append(_tensor(fitted_diffusion(BUILT_IN[name], meshes[0])) if fits else None)
    h = [count**-0.5 for count in cells]
    lattice = None
    if family in PERIODS:
        lattice = {name: _tensor(lattice_diffusion(BUILT_IN[name], family)) for name in DIFFUSING}
    return Family(cells, h, {name: _rates(h, errors[name]) for name in STEADY}, diffusivity, lattice)


def _tensor(K: np.ndarray) -> Tensor:
    """K/α, its principal values, and how far it is from 1 at most."""
    low, high = (float(value) for value in np.linalg.eigvalsh(K))
    return Tensor(K.tolist(), [low, high], 0.5 * (low + high), max(abs(low - 1), abs(high - 1)))


def mesh_of(family: str, n: int, seed: int) -> Mesh:
    """One mesh of a family; the unstructured ones have as many cells as triangles of that size would be."""
    if family not in ("irregular", GMSH):
        return FAMILIES[family](n, seed)
    engine = "gmsh" if family == GMSH else "builtin"
    (mesh,) = generate_meshes([{"kind": "irregular", "cells": 2 * n * n, "seed": seed, "engine": engine}])
    return mesh


def _rates(h: Sequence[float], errors: list[float]) -> Steady:
    rates = Rates(tuple(h), tuple(errors))
    found = rates.rates if len(h) > 1 else ()
    shown = [rate if math.isfinite(rate) else None for rate in found]
    return Steady(errors, shown, rates.order if len(h) > 1 else None)


def _algebra() -> Algebra:
    """What needs no refinement."""
    return Algebra(
        {"euler": measure_time_order(BUILT_IN["euler"]).order},
        {name: str(square_equation(BUILT_IN[name])) for name in (*IMPLICIT, "euler", "two-hop-printed")},
        {name: _implicit(name) for name in IMPLICIT},
    )


def _implicit(name: str) -> Implicit:
    """R(z), where it is stable, how much modes grow at some steps, its diffusivity, and whether it feels a source."""
    scheme, graph = BUILT_IN[name], default_graph()
    found = measure_stability(scheme, graph)
    assert found.factor is not None
    assert found.dt_max is not None
    (z,) = found.factor.free_symbols
    grown = [abs(found.factor.subs(z, -sp.Rational(str(step)))) for step in STEPS]
    felt = abs(operator(scheme, graph, dt=graph.V.min()).N).sum() / (graph.V.min() * graph.cells)
    return Implicit(
        factor=str(found.factor),
        stable="at every step" if math.isinf(found.dt_max) else "at short steps" if found.dt_max else "at no step",
        steps=list(STEPS),
        growth=[float(value) for value in grown],
        diffusivity=_tensor(lattice_diffusion(scheme, "squares")),
        source=float(felt),
    )
