"""The meshes of the convergence study, the problems posed on them, and their exact semi-discrete solutions."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from scipy.sparse import block_array, csr_array, diags_array
from scipy.sparse.linalg import expm_multiply

from fluxforge.data import cached
from fluxforge.gnn import Network
from fluxforge.mesh import Conditions, Dirichlet, DualGraph, dual, fourier_step
from fluxforge.scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import AbstractStepper, Operator, Solver, generator, network_stepper, stepper

Subject: TypeAlias = Scheme | Network


@dataclass(frozen=True)
class Answers:
    """Noise in T₀ and in S, in every mode of the mesh, and the exact solutions each gives after some time.

    `free` starts from T₀ with S = 0, `driven` from T = 0 with S: together they could hide what each shows.
    """

    T0: np.ndarray
    S: np.ndarray
    free: np.ndarray
    driven: np.ndarray


def graph_of(cells: int, seed: int, boundary: Conditions = None) -> DualGraph:
    """The irregular mesh of the unit square of about that many cells, the same on every machine."""
    (mesh,) = cached([{"kind": "irregular", "cells": cells, "seed": seed, "engine": "builtin"}])
    return dual(mesh, Dirichlet() if boundary is None else boundary)


def step_of(
    subject: Subject, graph: DualGraph, dt: float, *, source: np.ndarray, solver: Solver = "auto"
) -> AbstractStepper:
    """A scheme or a network, ready to step."""
    if isinstance(subject, Network):
        return network_stepper(subject, graph, dt, source=source)
    return stepper(subject, graph, dt, source=source, solver=solver)


@lru_cache(maxsize=1)
def answers(cells: int, seed: int, end: float) -> Answers:
    """The noise of a mesh and what becomes of it after `end` Fourier steps."""
    graph = graph_of(cells, seed)
    fourier = fourier_step(graph)
    rng = np.random.default_rng([cells, seed])
    T0, S = rng.standard_normal(graph.cells), rng.standard_normal(graph.cells) / fourier
    system, nothing = generator(BUILT_IN["euler"], graph), np.zeros(graph.cells)
    t = end * fourier
    return Answers(
        T0, S, exact_action(system, graph.V, T0, nothing, t=t), exact_action(system, graph.V, nothing, S, t=t)
    )


def exact_action(system: Operator, V: np.ndarray, T0: np.ndarray, S: np.ndarray, *, t: float) -> np.ndarray:
    """T(t) of dT/dt = G T + s S + r, by the action of the exponential: no full matrix, for meshes of any size.

    √V G /√V is symmetric for a conservative flux, so that the powers in the series do not grow for a while before
    they fall. Their number grows as t λ_max, which is why t is counted in Fourier steps.
    """
    root = np.sqrt(V)
    constant = t * root * (system.N @ S + system.b)
    # The constant is one more unknown, in units that keep it from deciding the norm of the matrix.
    unit = float(np.abs(constant).sum()) or 1.0
    scaled = t * csr_array(diags_array(root) @ system.M @ diags_array(1 / root))
    column = csr_array((constant / unit)[:, None])
    whole = block_array([[scaled, column], [None, csr_array((1, 1))]], format="csr")
    found = expm_multiply(whole, np.append(root * T0, unit), traceA=float(scaled.diagonal().sum()))
    return np.asarray(found[:-1] / root)
