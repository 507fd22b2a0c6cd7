"""An explicit linear scheme stage by stage and as one row per cell: the same step, and the form that moves less."""

import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge.mesh import DualGraph, Neumann, dual, fourier_step, jittered
from fluxforge.scheme import Scheme, linear_stages
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import AffineMap, LinearStepper, _linear, apply, assemble, operator, stepper
from fluxforge.stepping._linear import stage_rows
from strategies import BOUNDARIES, MESHES, noise

EXPLICIT = [scheme for scheme in BUILT_IN.values() if not scheme.implicit and linear_stages(scheme) is not None]
GRAPHS = {name: dual(MESHES["mixed"], conditions) for name, conditions in BOUNDARIES.items()}
EPS = float(np.finfo(float).eps)


def build_both_forms(scheme: Scheme, graph: DualGraph, dt: float, S: np.ndarray) -> tuple[LinearStepper, LinearStepper]:
    """Stage by stage, and as one row per cell."""
    step = operator(scheme, graph, dt=dt)
    merged = ({"T_new": AffineMap({"T": step.M, "S": step.N}, step.b)},)
    staged, whole = (
        LinearStepper(
            stages=tuple(stage_rows(stage, source=S, order=None, dtype=np.dtype(float)) for stage in stages if stage),
            order=None,
            always=jnp.asarray(True),
            cells=graph.cells,
            dtype="float64",
        )
        for stages in (assemble(scheme, graph, dt=dt, parameters=None), merged)
    )
    return staged, whole


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
@pytest.mark.parametrize("scheme", EXPLICIT, ids=str)
def test_both_forms_are_the_same_step_to_round_off(scheme: Scheme, graph: DualGraph) -> None:
    T, S = noise(graph.cells, 1), noise(graph.cells, 2)
    dt = 0.4 * fourier_step(graph)
    staged, whole = build_both_forms(scheme, graph, dt, S)
    assert len(whole.stages) == 1
    assert len(staged.stages) >= len(whole.stages)
    # Each form is sums of at most `terms` products, over the stages: off by ε times that many of the same sums of
    # absolute values, in which nothing cancels. Composing beforehand rounds as often again.
    stages = assemble(scheme, graph, dt=dt, parameters=None)
    sizes = tuple(
        {
            name: AffineMap({field: abs(matrix) for field, matrix in affine.matrices.items()}, np.abs(affine.constant))
            for name, affine in stage.items()
        }
        for stage in stages
    )
    size = apply(sizes, np.abs(T), np.abs(S))
    terms = len(stages) * (len(whole.stages[0].index) + 4)
    assert (np.abs(np.asarray(staged(T)) - np.asarray(whole(T))) <= 2 * terms * EPS * size).all()


@pytest.mark.parametrize("scheme", EXPLICIT, ids=str)
def test_the_form_that_moves_far_fewer_bytes_is_taken(scheme: Scheme) -> None:
    graph = dual(jittered(12, 0.3, seed=1))
    S, dt = np.zeros(graph.cells), 0.4 * fourier_step(graph)
    moved = [step.bytes_per_cell(graph.cells) or 0.0 for step in build_both_forms(scheme, graph, dt, S)]
    taken = stepper(scheme, graph, dt).bytes_per_cell(graph.cells)
    assert taken == (moved[1] if moved[1] <= 0.75 * moved[0] else moved[0])


def test_the_corrected_flux_is_one_row_per_cell() -> None:
    graph = dual(jittered(12, 0.3, seed=1))
    step = stepper("corrected", graph, 0.4 * fourier_step(graph))
    assert isinstance(step, LinearStepper)
    assert len(step.stages) == 1
    # Nine cells around each, in two rounds of messages: 9 · (8 + 4), the diagonal, T read and written; the walls of
    # this mesh are held at zero, so that there is no constant.
    assert step.bytes_per_cell(graph.cells) == 132
    held = stepper("corrected", graph, 0.4 * fourier_step(graph), source=1.0)
    assert held.bytes_per_cell(graph.cells) == 140


@pytest.mark.parametrize("scheme", EXPLICIT, ids=str)
def test_what_is_expected_of_few_rows_is_no_more_than_all_need(scheme: Scheme) -> None:
    graph = dual(jittered(20, 0.3, seed=3), Neumann())
    stages = assemble(scheme, graph, dt=0.4 * fourier_step(graph), parameters=None)
    _, whole = build_both_forms(scheme, graph, 0.4 * fourier_step(graph), np.zeros(graph.cells))
    needed = whole.bytes_per_cell(graph.cells)
    assert needed is not None
    assert 0.5 * needed * graph.cells <= _linear.least_bytes(stages, graph.cells, 8) <= needed * graph.cells


def test_long_products_are_not_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("composed")

    monkeypatch.setattr(_linear, "compose", refuse)
    graph = dual(jittered(20, 0.3, seed=3))
    for name in ("midpoint", "rk4", "rkl2-8"):
        stepper(name, graph, 0.4 * fourier_step(graph))
    with pytest.raises(AssertionError, match="composed"):
        stepper("corrected", graph, 0.4 * fourier_step(graph))
