"""Explicit linear steps by the compiled kernel: the same step as XLA's, however cells and fronts are shared out."""

import threading
from collections.abc import Callable

import jax
import numpy as np
import pytest

from fluxforge.mesh import DualGraph, Mesh, Neumann, dual, fourier_step, jittered
from fluxforge.scheme import Scheme, linear_stages
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import (
    AffineMap,
    LinearStepper,
    _build,
    _kernel_layout,
    _run,
    apply,
    assemble,
    run_stepper,
    simulate,
    stepper,
)
from fluxforge.stepping._kernel import KernelStepper, Workspace, kernel_stepper
from fluxforge.stepping._kernel_program import make_program
from strategies import BOUNDARIES, noise

EXPLICIT = [scheme for scheme in BUILT_IN.values() if not scheme.implicit and linear_stages(scheme) is not None]
EPS = float(np.finfo(float).eps)
STEPS = 7


def shuffle_cells(mesh: Mesh) -> Mesh:
    order = np.random.default_rng(0).permutation(len(mesh.cells))
    return Mesh(mesh.points, mesh.cells[order], mesh.boundary, origin="shuffled")


GRAPHS = {name: dual(jittered(40, 0.3, seed=2), conditions) for name, conditions in BOUNDARIES.items()}
GRAPHS["shuffled"] = dual(shuffle_cells(jittered(40, 0.3, seed=2)))
INSULATED = dual(jittered(40, 0.3, seed=2), Neumann())
every_scheme = pytest.mark.parametrize("scheme", EXPLICIT, ids=str)


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads on small meshes too."""
    monkeypatch.setattr(_kernel_layout, "LEAST_CELLS_PER_THREAD", 64)


def kernel(
    scheme: Scheme, graph: DualGraph, dt: float, S: np.ndarray, *, dtype: str = "float64", threads: int = 3
) -> KernelStepper:
    stages = assemble(scheme, graph, dt=dt, parameters=None)
    return kernel_stepper(stages, source=S, dtype=dtype, threads=threads)  # type: ignore[arg-type]


def round_off(scheme: Scheme, graph: DualGraph, dt: float, S: np.ndarray, largest: float, slots: int) -> float:
    """What two ways of evaluating STEPS steps may differ by.

    Either way, a stage is a sum of at most slots + 4 products, and its error that many ε of the sum of their absolute
    values. In differences, f_P is subtracted once for every neighbour, so that the sum is at most twice as large. Steps
    below the limit do not amplify what earlier ones left.
    """
    stages = assemble(scheme, graph, dt=dt, parameters=None)
    sizes = tuple(
        {
            name: AffineMap({field: abs(matrix) for field, matrix in affine.matrices.items()}, np.abs(affine.constant))
            for name, affine in stage.items()
        }
        for stage in stages
    )
    size = apply(sizes, np.full(graph.cells, largest), np.abs(S)).max()
    return STEPS * len(stages) * (slots + 4) * 2 * 2 * EPS * float(size)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
@every_scheme
def test_the_kernel_and_xla_are_the_same_step_to_round_off(scheme: Scheme, graph: DualGraph) -> None:
    T, S = noise(graph.cells, 1), noise(graph.cells, 2)
    dt = 0.4 * fourier_step(graph)
    ours = kernel(scheme, graph, dt, S)
    exact = np.asarray(stepper(scheme, graph, dt, source=S).rollout(T, STEPS))
    after = np.asarray(ours.rollout(T, STEPS))
    largest = max(np.abs(T).max(), np.abs(exact).max())
    allowed = round_off(scheme, graph, dt, S, largest, ours.work.program.slots)
    assert allowed < 1e-10 * np.abs(exact - T).max()
    assert np.abs(after - exact).max() <= allowed


def test_a_scheme_of_several_matrices_is_stepped_stage_by_stage() -> None:
    graph, scheme = GRAPHS["dirichlet"], BUILT_IN["corrected"]
    T, S = noise(graph.cells, 1), noise(graph.cells, 2)
    dt = 0.4 * fourier_step(graph)
    program = make_program(assemble(scheme, graph, dt=dt, parameters=None), S)
    assert len(program.matrices) > 2
    ours = KernelStepper(Workspace(program, None, np.dtype(float), 3))
    exact = np.asarray(stepper(scheme, graph, dt, source=S).rollout(T, STEPS))
    # The gradients of this scheme are sums in which entries of the rows cancel: the sizes count them in full.
    allowed = round_off(scheme, graph, dt, S, max(np.abs(T).max(), np.abs(exact).max()), 9)
    assert np.abs(np.asarray(ours.rollout(T, STEPS)) - exact).max() <= allowed


@pytest.mark.parametrize("name", ["euler", "rk4", "rkl2-8", "corrected"])
def test_threads_and_depth_change_no_bit(name: str) -> None:
    """Each cell is worked out from the same numbers in the same order, whoever does it and when."""
    graph = dual(jittered(70, 0.3, seed=5))
    T = noise(graph.cells, 1)
    step = kernel(BUILT_IN[name], graph, 0.4 * fourier_step(graph), noise(graph.cells, 2), threads=1)
    plan = step.work.plan
    step.work.plan = plan._replace(depth=1)
    plain = step.rollout(T, 9)
    tried = set()
    for threads, parts in ((1, 1), (1, 3), (2, 4), (3, 6)):
        for depth in (2, 3, 7, plan.depth):
            # The wedges between ranges must not meet.
            if depth * plan.reach <= plan.cells // parts // 2:
                step.work.plan = plan._replace(threads=threads, parts=parts, depth=depth)
                tried.add((parts > 1, depth > 1))
                np.testing.assert_array_equal(step.rollout(T, 9), plain)
    assert (True, True) in tried


@pytest.mark.parametrize("scheme", [scheme for scheme in EXPLICIT if scheme.claims.conservative], ids=str)
def test_constants_are_kept_and_heat_is_neither_made_nor_lost(scheme: Scheme) -> None:
    dt = 0.4 * fourier_step(INSULATED)
    step = kernel(scheme, INSULATED, dt, np.zeros(INSULATED.cells))
    constant = np.full(INSULATED.cells, 0.7)
    np.testing.assert_array_equal(step.rollout(constant, 100), constant)
    T = 1.0 + noise(INSULATED.cells, 3)
    after = np.asarray(step.rollout(T, 2_000))
    assert np.ptp(after) < 0.9 * np.ptp(T)
    assert abs(INSULATED.V @ after - INSULATED.V @ T) <= 1e-12 * (INSULATED.V @ np.abs(T))


def test_single_precision() -> None:
    graph = GRAPHS["dirichlet"]
    T, S, dt = noise(graph.cells, 1), noise(graph.cells, 2), 0.4 * fourier_step(graph)
    after = kernel(BUILT_IN["euler"], graph, dt, S, dtype="float32").rollout(T, STEPS)
    assert after.dtype == np.float32
    exact = np.asarray(stepper("euler", graph, dt, source=S).rollout(T, STEPS))
    allowed = round_off(BUILT_IN["euler"], graph, dt, S, np.abs(T).max(), 3) / EPS * float(np.finfo(np.float32).eps)
    assert np.abs(after - exact).max() <= allowed


def test_stages_of_a_runge_kutta_method_share_one_matrix() -> None:
    stages = assemble(BUILT_IN["rk4"], GRAPHS["dirichlet"], dt=1e-5, parameters=None)
    program = make_program(stages, np.ones(GRAPHS["dirichlet"].cells))
    assert len(program.matrices) == 1
    assert len(program.constants) == 1
    assert len(program.fronts()) == 5


def test_the_bytes_of_a_step_are_those_of_its_form() -> None:
    graph = INSULATED
    nothing, dt = np.zeros(graph.cells), 0.4 * fourier_step(graph)
    # Three neighbours of 8 + 4 bytes, T read, T_new written; midpoint's second round reads T and the half step.
    assert kernel(BUILT_IN["euler"], graph, dt, nothing).bytes_per_cell(graph.cells) == 52
    assert kernel(BUILT_IN["midpoint"], graph, dt, nothing).bytes_per_cell(graph.cells) == 52 + 60
    assert kernel(BUILT_IN["corrected"], graph, dt, nothing).bytes_per_cell(graph.cells) == 9 * 12 + 16


def test_a_long_run_on_the_cpu_takes_the_kernel_and_a_traced_step_never() -> None:
    small, graph, euler = GRAPHS["dirichlet"], dual(jittered(101, 0.2, seed=1)), BUILT_IN["euler"]
    assert small.cells < _build.LEAST_CELLS <= graph.cells
    assert isinstance(run_stepper(euler, small, 0.4 * fourier_step(small), steps=10**9), LinearStepper)
    dt = 0.4 * fourier_step(graph)
    assert isinstance(run_stepper(euler, graph, dt, steps=10**9), KernelStepper)
    assert isinstance(run_stepper(euler, graph, dt, steps=10), LinearStepper)
    assert not isinstance(run_stepper(BUILT_IN["crank-nicolson"], graph, dt, steps=10**9), KernelStepper)
    step = stepper(euler, graph, dt)
    assert isinstance(step, LinearStepper)
    slope = jax.grad(lambda T: step.advance(T).sum())(jax.numpy.ones(graph.cells))
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("dt_fraction", [0.5, 40.0])
def test_a_run_by_the_kernel_is_the_run_by_xla(monkeypatch: pytest.MonkeyPatch, dt_fraction: float) -> None:
    """Also one that blows up, and at which step."""

    def run() -> _run.Simulation:
        return simulate(
            "euler",
            jittered(12, 0.2, seed=1),
            initial="sin(pi*x)*y",
            boundary=Neumann(),
            dt_fraction=dt_fraction,
            steps=60,
            force=True,
            throw=False,
        )

    plain = run()
    monkeypatch.setattr(_build, "LEAST_CELLS", 0)
    monkeypatch.setattr(_build, "LEAST_UPDATES", 0)
    ours = run()
    assert ours.blew_up_at == plain.blew_up_at
    assert (ours.blew_up_at is None) == (dt_fraction < 1)
    np.testing.assert_allclose(ours.fields, plain.fields, rtol=0, atol=60 * 40 * EPS * np.abs(plain.fields).max())


@pytest.mark.parametrize(("setting", "threads"), [("1", 1), ("", None), ("no number", None), ("100000", None)])
def test_no_more_threads_than_the_environment_allows(
    monkeypatch: pytest.MonkeyPatch, setting: str, threads: int | None
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(5)), raising=False)
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert _kernel_layout.allowed_threads() == (threads or 5)
    monkeypatch.setenv("PJRT_NPROC", "2")
    assert _kernel_layout.allowed_threads() == min(threads or 5, 2)


def test_where_a_thread_cannot_start_the_others_stop_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    step = kernel(BUILT_IN["euler"], INSULATED, 0.4 * fourier_step(INSULATED), np.zeros(INSULATED.cells), threads=2)
    T = noise(INSULATED.cells, 1)
    before, started = step.rollout(T, 3), []
    start: Callable[[threading.Thread], None] = threading.Thread.start

    def second_fails(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", second_fails)
        with pytest.raises(RuntimeError, match="new thread"):
            step.rollout(T, 3)
    assert not started[0].is_alive()
    np.testing.assert_array_equal(step.rollout(T, 3), before)


@pytest.mark.parametrize("text", ["RESOURCE_EXHAUSTED: Out of memory allocating 8796093022208 bytes.", "INTERNAL: no"])
def test_memory_exhausted_on_the_device_is_a_memory_error(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    def fail(*args: object, **options: object) -> None:
        raise jax.errors.JaxRuntimeError(text)

    monkeypatch.setattr(_run, "run_stepper", fail)
    wanted = MemoryError if "memory" in text else jax.errors.JaxRuntimeError
    with pytest.raises(wanted, match=text.split(":")[0]):
        simulate("euler", jittered(4, 0.2, seed=1))
