"""The memory study: the system reports the memory that is allocated, and verdicts follow the numbers."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from fluxforge.errors import FluxforgeError
from fluxforge.paper import PARTS
from fluxforge.paper.studies import memory
from fluxforge.paper.studies._measures import make_graph
from fluxforge.paper.studies._tasks import Task, open_measurements, run_child
from fluxforge.paper.studies.memory import Footprint, count_bytes, forget_peak, measure_footprint, read_peak
from fluxforge.scheme.reference import BUILT_IN
from study_documents import judge_document, read_partial, run_document

memory_figure = PARTS["memory"].draw["memory"]
pytestmark = pytest.mark.usefixtures("mesh_cache")

CONFIG = memory.Config(cells=(40, 60, 80, 100))
# Bytes per cell that a process is taken to hold while stepping, whatever the step.
HELD = {"euler": 68, "midpoint": 128, "midpoint-printed": 128, "two-hop": 140, "two-hop-printed": 140, "rkl2-8": 760}
BY_SOLVER = {"direct": 1500, "cg": 160}
STARTED = 300_000_000
COMPILED = 20_000_000


def _keep_footprints(folder: Path, config: memory.Config, *, forgets: bool = True) -> None:
    """Write footprints into the folder of a study, as if processes had been measured."""
    tasks = [
        Task(
            task="memory",
            baseline="its own mark",
            cells=cells,
            seed=memory.SEED,
            fourier=fraction,
            scheme=subject.scheme,
            solver=subject.solver,
        )
        for cells in config.sizes
        for subject in (memory.Subject(None), *memory.SUBJECTS.values())
        for fraction in ((0.0,) if subject.scheme is None else config.steps(cells))
    ]
    with open_measurements(folder, pytest.fail) as held:
        for k, task in enumerate(tasks):
            n = make_graph(task.cells, task.seed).cells
            each = 0 if task.scheme is None else BY_SOLVER.get(task.solver or "", 0) or HELD[task.scheme]
            compiled = 0 if task.scheme is None else COMPILED
            start = STARTED + 50 * n + 10**6 * (k % 3) * forgets
            stepping = start + each * n + compiled
            # A system that cannot forget a peak has the mesh's in it from the start.
            start = start if forgets else 2 * start
            footprint = Footprint(n, start, stepping + 10**6 * (each > 0), stepping, forgets)
            held.keep(task.title, task, Footprint, footprint)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("memory")


@pytest.fixture(scope="module")
def result(folder: Path) -> dict[str, Any]:
    _keep_footprints(folder, CONFIG)
    return run_document(memory, CONFIG, folder)


def _verdict(result: Mapping[str, Any], solver: str) -> str:
    return next(claim.verdict for claim in judge_document(memory, result) if claim.name.endswith(solver))


def test_the_peak_of_memory_is_read_and_reset() -> None:
    if not forget_peak():
        pytest.skip("this system does not forget peaks")
    before = read_peak()
    block = np.ones(32_000_000)
    held = read_peak() - before
    assert held == pytest.approx(256e6, abs=4e6)
    del block
    forget_peak()
    assert read_peak() - before < 10e6


@pytest.mark.parametrize("apart", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_process_measures_itself(apart: bool) -> None:
    task = Task(task="memory", cells=40, seed=1, fourier=0.5, scheme="crank-nicolson", solver="direct")
    if apart:
        footprint = msgspec.json.decode(run_child(task, measure_footprint), type=Footprint)
    else:
        footprint = measure_footprint(task)
    assert footprint.cells == make_graph(40, 1).cells
    assert footprint.whole > 1e8
    assert footprint.stepping > 1e8


def test_without_a_scheme_only_the_mesh_is_measured() -> None:
    footprint = measure_footprint(Task(task="memory", cells=40, seed=1, scheme=None))
    assert footprint.whole <= footprint.stepping


def test_bytes_per_cell_are_the_slope_beside_what_does_not_grow(result: dict[str, Any]) -> None:
    for name, held in HELD.items():
        assert result["bytes_per_cell"][name]["stepping"] == pytest.approx(held)
    assert result["bytes_per_cell"]["crank-nicolson, LU"]["stepping"] == pytest.approx(1500)
    assert result["bytes_per_cell"]["euler"]["sizes"] == 4
    row = result["rows"][0]
    assert row["stepping"] == pytest.approx(68 * row["cells"] + COMPILED)


def test_where_no_peak_is_forgotten_the_bare_process_is_the_baseline(result: dict[str, Any], tmp_path: Path) -> None:
    _keep_footprints(tmp_path, CONFIG, forgets=False)
    bytes_per_cell = run_document(memory, CONFIG, tmp_path)["bytes_per_cell"]
    assert bytes_per_cell["midpoint"]["stepping"] == pytest.approx(result["bytes_per_cell"]["midpoint"]["stepping"])


def test_counted_bytes_are_those_of_the_arrays() -> None:
    graph = make_graph(200, 1)
    # A coefficient and an index per neighbour, a diagonal, the source's share; T before and after.
    assert count_bytes(BUILT_IN["euler"], graph, None) / graph.cells == pytest.approx(3 * 12 + 8 + 8 + 16)
    cg, lu = (count_bytes(BUILT_IN["crank-nicolson"], graph, solver) for solver in ("cg", "direct"))
    assert 100 < cg / graph.cells < 300
    assert lu > cg


def test_a_quick_study_takes_the_second_step_on_the_largest_mesh_only(result: dict[str, Any]) -> None:
    assert {row["wanted"] for row in result["rows"] if row["fourier"] == 0.75} == {100}
    assert memory.Config(preset="paper").steps(30_000) == memory.FOURIER


def test_nothing_is_measured_twice(result: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "false")  # a new process would fail
    monkeypatch.setattr(memory, "count_bytes", lambda *_: pytest.fail("counted again"))
    again = run_document(memory, CONFIG, folder)
    assert again == result == json.loads(json.dumps(result, allow_nan=False))
    other = memory.Config(cells=CONFIG.cells, fractions=(0.125, 0.5))
    with pytest.raises(FluxforgeError, match="on 100 cells failed"):
        run_document(memory, other, folder)
    _keep_footprints(folder, memory.Config(cells=CONFIG.cells[-1:], fractions=(0.5,)))
    assert {row["fourier"] for row in run_document(memory, other, folder)["rows"]} == {0.125, 0.5}


def test_less_memory_than_lu_and_not_than_cg(result: dict[str, Any]) -> None:
    assert _verdict(result, "CG") == "does not hold"
    # On so few cells LU hardly fills in, which only the count sees.
    assert _verdict(result, "LU") in ("holds", "holds under a condition")


def test_verdicts_change_with_the_numbers(result: dict[str, Any]) -> None:
    changed = copy.deepcopy(result)
    fits = changed["bytes_per_cell"]
    fits["crank-nicolson, CG"] |= {"stepping": 400.0, "counted": 400.0}
    assert _verdict(changed, "CG") == "holds"
    fits["two-hop-printed"]["stepping"] = 300.0
    assert _verdict(changed, "CG") == "holds under a condition"
    fits["crank-nicolson, LU"] |= {"stepping": 100.0, "counted": 100.0}
    assert _verdict(changed, "LU") == "does not hold"
    fits["crank-nicolson, LU"] |= {"stepping": None, "counted": None}
    assert _verdict(changed, "LU") == "does not hold"


def test_the_evidence_says_whether_the_step_matters(result: dict[str, Any]) -> None:
    assert "no explicit scheme's memory depends on Δt" in judge_document(memory, result)[0].evidence
    changed = copy.deepcopy(result)
    changed["bytes_per_cell"]["midpoint"]["largest_by_step"]["0.75"] *= 2
    assert "an explicit scheme's memory depends on Δt" in judge_document(memory, changed)[0].evidence


def test_the_figure_draws(result: dict[str, Any], tmp_path: Path) -> None:
    figure = memory_figure(read_partial(result, memory.Result))
    figure.savefig(tmp_path / "memory.png")
    measured, counted, _ = figure.axes
    # A curve per scheme, and open markers for the second step where it is measured.
    assert len(measured.lines) == 2 * len(memory.SUBJECTS)
    assert len(counted.lines) == len(memory.SUBJECTS)
    assert all(len(line.get_xdata()) == 4 for line in counted.lines)
