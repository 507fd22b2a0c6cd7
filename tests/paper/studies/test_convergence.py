"""The convergence study at toy size: what is measured is right, kept, and judged by its numbers alone."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from fluxforge.certify._systems import exact_solution
from fluxforge.errors import FluxforgeError, InputError
from fluxforge.gnn.exact import sparse_network
from fluxforge.mesh import Dirichlet, fourier_step
from fluxforge.paper.studies import _measures, _tasks, convergence
from fluxforge.paper.studies._convergence_result import COMPARED_SCHEMES, Order, Row, fit_time_orders
from fluxforge.paper.studies._measures import SpaceError, make_graph, solve_exactly
from fluxforge.paper.studies._tasks import Task, run_child
from fluxforge.paper.studies.convergence import measure_task
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import generator
from study_documents import judge_document, run_document

TOY = convergence.Config(
    cells=(40, 80),
    fractions=(2.0, 1.0, 0.5, 0.25, 0.125),
    end=64.0,
    until=0.01,
    seeds=(1,),
    schemes=COMPARED_SCHEMES,
    network_cells=(80, 40),
)


@pytest.fixture(scope="module", autouse=True)
def cache(mesh_cache: pytest.MonkeyPatch) -> None:
    mesh_cache.setattr(_measures, "CLOCK_SECONDS", 1e-4)
    mesh_cache.setattr(_measures, "CLOCK_TRIES", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("convergence")


@pytest.fixture(scope="module")
def result(folder: Path) -> dict[str, Any]:
    # The lemma's network is the first-order scheme, so what is right for it is known.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convergence, "read_networks", lambda _: {"lemma": sparse_network(1, 2, 4)})
        return run_document(convergence, TOY, folder)


def _verdict(result: Mapping[str, Any], name: str) -> str:
    return next(claim.verdict for claim in judge_document(convergence, result) if claim.name == name)


def _rows(result: Mapping[str, Any], scheme: str, wanted: int | None = None) -> list[dict[str, Any]]:
    return [row for row in result["rows"] if row["scheme"] == scheme and wanted in (None, row["wanted"])]


def test_the_action_of_the_exponential_is_the_exponential() -> None:
    graph = make_graph(60, 1, Dirichlet("1 + x*y"))
    system = generator(BUILT_IN["euler"], graph)
    rng = np.random.default_rng(0)
    T0, S = rng.standard_normal(graph.cells), 1e3 * rng.standard_normal(graph.cells)
    t = 20 * fourier_step(graph)
    for start, source in ((T0, S), (T0, 0 * S), (0 * T0, S)):
        wanted = exact_solution(system, start, source, t)
        solution = solve_exactly(system, graph.V, start, source, t=t)
        assert np.abs(solution - wanted).max() < 1e-12 * np.abs(wanted).max()


def test_the_result_is_plain_json_with_a_row_for_every_step(result: dict[str, Any]) -> None:
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert len(_rows(result, "midpoint")) == 2 * 5
    assert {row["wanted"] for row in _rows(result, "lemma")} == {40, 80}
    assert all(row["seconds"] > 0 for row in result["rows"])
    assert all(
        row["dt"] == pytest.approx(row["fourier"] * mesh["fourier"])
        for mesh in result["meshes"][:1]
        for row in _rows(result, "euler", mesh["wanted"])
    )


def test_observed_orders_in_time_are_the_schemes_own(result: dict[str, Any]) -> None:
    wanted = {
        "euler": (1, 1),
        "midpoint": (2, 2),
        "midpoint-printed": (2, 1),
        "two-hop": (2, 2),
        "crank-nicolson": (2, 2),
    }
    for name, orders in wanted.items():
        for orders_of_mesh in result["orders"][name]["time"].values():
            assert orders_of_mesh["free"]["order"] == pytest.approx(orders[0], abs=0.1)
            assert orders_of_mesh["driven"]["order"] == pytest.approx(orders[1], abs=0.1)


def test_a_wrong_scheme_shows_no_order(result: dict[str, Any]) -> None:
    for orders_of_mesh in result["orders"]["two-hop-printed"]["time"].values():
        assert orders_of_mesh["free"]["order"] is None
        assert orders_of_mesh["driven"]["order"] is None
    assert result["orders"]["two-hop-printed"]["space"]["order"] is None
    assert min(row["error"] for row in _rows(result, "two-hop-printed") if row["error"] is not None) > 0.1


def test_orders_are_taken_from_stable_steps_alone() -> None:
    other = {"cells": 9, "dt": 1.0, "steps": 1, "blew_up": False, "error": None, "driven": None}
    unused = dict.fromkeys(("residual_half", "residual_one"), None) | dict.fromkeys(
        ("seconds_per_step", "seconds"), 0.0
    )
    rows = [
        Row(scheme="s", wanted=9, fourier=f, stable=f <= 1, free=f**2 if f <= 1 else 3.0, **other, **unused)
        for f in (4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
    ]
    orders = fit_time_orders("s", rows)["9"]
    assert (orders.free.levels, orders.free.order) == (4, pytest.approx(2.0))
    assert orders.driven == Order(0, None, [])
    assert fit_time_orders("s", rows[:5])["9"].free.order is None


def test_what_blows_up_is_kept_as_null_and_lies_beyond_the_limit(result: dict[str, Any]) -> None:
    blown = [row for row in _rows(result, "euler") if row["blew_up"]]
    assert {row["fourier"] for row in blown} == {2.0}
    assert all(row["error"] is None and row["stable"] is False for row in blown)
    assert not any(row["blew_up"] for row in _rows(result, "crank-nicolson"))
    for row in result["rows"]:
        assert not (row["stable"] and row["blew_up"])


def test_a_run_that_grows_or_breaks_has_no_error() -> None:
    one, V = np.ones(4), np.ones(4)
    assert _measures.relative_error(2e3 * one, one, V, start=one) is None
    assert _measures.relative_error(np.nan * one, one, V, start=one) is None
    assert _measures.relative_error(1.5 * one, one, V, start=one) == pytest.approx(0.5)


def test_crank_nicolson_has_no_residual_at_one_half_and_euler_twice_its_own_at_one(result: dict[str, Any]) -> None:
    assert max(row["residual_half"] for row in _rows(result, "crank-nicolson")) < 1e-10
    for row in _rows(result, "euler"):
        assert row["residual_one"] == pytest.approx(2 * row["residual_half"])


def test_a_network_that_is_the_first_order_scheme_measures_like_it(result: dict[str, Any]) -> None:
    assert "lemma" in result["networks"]
    for wanted in (40, 80):
        for network, euler in zip(_rows(result, "lemma", wanted), _rows(result, "euler", wanted), strict=True):
            assert network["residual_half"] == pytest.approx(euler["residual_half"], rel=1e-6)
            if euler["error"] is not None:
                assert network["error"] == pytest.approx(euler["error"], rel=1e-6)


def test_a_network_is_put_on_meshes_it_can_afford(result: dict[str, Any]) -> None:
    assert {row["wanted"] for row in _rows(result, "lemma")} == {40, 80}
    (space,) = [row for row in result["space"] if row["scheme"] == "lemma"]
    (euler,) = [row for row in result["space"] if row["scheme"] == "euler" and row["wanted"] == 40]
    assert space["wanted"] == 40
    assert space["error"] == pytest.approx(euler["error"], rel=1e-6)
    assert "at most 80 cells, for errors in space 40" in result["networks"]


def test_oscillations_begin_where_the_fastest_mode_turns(result: dict[str, Any]) -> None:
    for mesh in result["meshes"]:
        assert mesh["oscillation"] == pytest.approx(2 / mesh["rate"])
        assert mesh["limits"]["euler"]["dt"] == pytest.approx(mesh["oscillation"], rel=1e-4)
        assert mesh["limits"]["crank-nicolson"] == {"dt": None, "unlimited": True}


def test_nothing_is_measured_twice(result: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> dict[str, Any]:
        raise AssertionError("measured again")

    monkeypatch.setattr(convergence, "read_networks", lambda _: {"lemma": sparse_network(1, 2, 4)})
    for name in ("measure_grid", "measure_mesh", "measure_seconds", "measure_space_error"):
        monkeypatch.setattr(convergence, name, refuse)
    assert run_document(convergence, TOY, folder) == result
    changed = convergence.Config(**{**TOY.__dict__, "end": 32.0})
    with pytest.raises(AssertionError, match="measured again"):
        run_document(convergence, changed, folder)
    monkeypatch.setattr(convergence, "read_networks", lambda _: {"lemma": sparse_network(2, 2, 4)})
    with pytest.raises(AssertionError, match="measured again"):
        run_document(convergence, TOY, folder)


def test_without_networks_the_result_says_so(folder: Path, result: dict[str, Any]) -> None:
    told = run_document(convergence, TOY, folder)
    assert "the experiment higher-order, which has not been run" in told["networks"]
    assert "lemma" not in told["schemes"]


def test_a_process_of_its_own_measures_the_same() -> None:
    task = Task(task="space", scheme="midpoint", cells=40, seed=1, fraction=0.8, until=0.01)
    here = measure_task(task)
    there = msgspec.json.decode(run_child(task, measure_task), type=SpaceError)
    assert isinstance(here, SpaceError)
    assert there.error == pytest.approx(here.error, rel=1e-8)
    assert (there.cells, there.steps) == (here.cells, here.steps)


def test_a_process_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "false")
    with pytest.raises(FluxforgeError, match="the measurement of euler on 7 cells failed: exit status 1"):
        run_child(Task(task="grid", scheme="euler", cells=7, seed=1), measure_task)


def test_large_meshes_are_measured_apart_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def pretend(many: Any, measure: Any, *, workers: int | None) -> Any:
        asked.extend(many)
        for k in reversed(range(len(many))):
            yield k, msgspec.json.encode(measure_task(many[k]))

    monkeypatch.setattr(convergence, "read_networks", lambda _: {"lemma": sparse_network(1, 2, 4)})
    monkeypatch.setattr(convergence, "LARGE_MESH", 60)
    monkeypatch.setattr(_tasks, "run_children", pretend)
    changes = {"fractions": (1.0,), "seeds": (1, 2), "end": 2.0, "network_cells": (40, 40)}
    config = convergence.Config(**{**TOY.__dict__, **changes})
    document = run_document(convergence, config, tmp_path)
    assert {task.cells for task in asked} == {80}
    assert {row["wanted"] for row in _rows(document, "lemma")} == {40}
    assert all(len(row["errors"]) == (2 if row["wanted"] == 40 else 1) for row in document["space"])
    asked.clear()
    assert run_document(convergence, config, tmp_path) == document
    assert not asked


def test_the_study_needs_the_schemes_its_claims_speak_of(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the claims compare with crank-nicolson"):
        run_document(convergence, convergence.Config(schemes=("euler",)), tmp_path)
    with pytest.raises(InputError, match="no built-in scheme 'eulre'"):
        run_document(convergence, convergence.Config(schemes=("eulre",)), tmp_path)


def test_verdicts_of_the_toy_study(result: dict[str, Any]) -> None:
    assert _verdict(result, "similar to Crank–Nicolson") == "holds under a condition"
    assert _verdict(result, "midpoint follows Crank–Nicolson") == "holds under a condition"
    assert _verdict(result, "two-hop near the Fourier step") == "does not hold"
    assert _verdict(result, "second order in space") == "does not hold"


def _replace_scheme(
    result: dict[str, Any], name: str, other: str, *, low: float = 0.0, high: float = 9.0
) -> dict[str, Any]:
    """The result with the numbers of scheme `other` in place of those of `name`, for steps in a range."""
    changed = copy.deepcopy(result)
    peers = {(row["wanted"], row["fourier"]): row for row in _rows(changed, other)}
    for row in _rows(changed, name):
        if low <= row["fourier"] <= high:
            row |= peers[row["wanted"], row["fourier"]] | {"scheme": name}
    return changed


def test_similarity_is_judged_by_the_numbers(result: dict[str, Any]) -> None:
    both = _replace_scheme(_replace_scheme(result, "two-hop-printed", "two-hop"), "midpoint-printed", "midpoint")
    assert _verdict(both, "similar to Crank–Nicolson") == "holds"
    none = _replace_scheme(result, "midpoint", "two-hop-printed")
    assert _verdict(none, "similar to Crank–Nicolson") == "does not hold"
    # One seed of a network decides nothing.
    assert _verdict(_replace_scheme(none, "lemma", "crank-nicolson"), "similar to Crank–Nicolson") == "does not hold"


def test_a_verdict_that_the_printed_formulas_do_not_have_says_so_first(result: dict[str, Any]) -> None:
    claims = {claim.name: claim for claim in judge_document(convergence, result)}
    assert claims["similar to Crank–Nicolson"].condition == "with other formulas than printed"
    both = _replace_scheme(_replace_scheme(result, "two-hop-printed", "two-hop"), "midpoint-printed", "midpoint")
    assert next(c for c in judge_document(convergence, both) if c.name == "similar to Crank–Nicolson").condition == ""


def test_the_range_is_judged_by_the_numbers(result: dict[str, Any]) -> None:
    apart = _replace_scheme(result, "midpoint-printed", "two-hop-printed", low=2.0)
    assert _verdict(apart, "midpoint follows Crank–Nicolson") == "does not hold"
    right = _replace_scheme(apart, "midpoint", "crank-nicolson")
    assert _verdict(right, "midpoint follows Crank–Nicolson") == "holds under a condition"
    printed = _replace_scheme(right, "midpoint-printed", "crank-nicolson")
    assert _verdict(printed, "midpoint follows Crank–Nicolson") == "holds"


def test_struggling_near_the_fourier_step_is_judged_by_the_numbers(result: dict[str, Any]) -> None:
    changed = _replace_scheme(result, "two-hop-printed", "crank-nicolson", high=0.25)
    assert _verdict(changed, "two-hop near the Fourier step") == "holds"
    changed = _replace_scheme(result, "two-hop", "euler", low=0.5)
    assert _verdict(changed, "two-hop near the Fourier step") == "holds under a condition"
    early = copy.deepcopy(result)
    early["meshes"][0]["limits"]["two-hop-printed"]["dt"] = 0.9 * early["meshes"][0]["fourier"]
    assert _verdict(early, "two-hop near the Fourier step") == "holds under a condition"


def test_the_order_in_space_is_judged_by_the_numbers(result: dict[str, Any]) -> None:
    changed = copy.deepcopy(result)
    for name in ("midpoint", "two-hop"):
        changed["orders"][name]["space"]["order"] = 1.9
    assert _verdict(changed, "second order in space") == "holds under a condition"
    for name in ("midpoint-printed", "two-hop-printed"):
        changed["orders"][name]["space"]["order"] = 2.1
    assert _verdict(changed, "second order in space") == "holds"


def test_networks_are_told_mesh_by_mesh(result: dict[str, Any]) -> None:
    said = {claim.name: claim.evidence for claim in judge_document(convergence, result)}
    # It is the first-order scheme, so that its residual is Euler's.
    assert said["lower residual than first order"].endswith("lemma on 40, 80 cells (θ = ½): 1, 1")
    (space,) = [row for row in result["space"] if row["scheme"] == "lemma"]
    last = f"lemma: error {space['error']:.1e} on {space['cells']} to {space['cells']} cells"
    assert said["second order in space"].endswith(last)
    changed = copy.deepcopy(result)
    next(row for row in changed["space"] if row["scheme"] == "lemma")["error"] = None
    assert (
        "lemma: error blows up on"
        in {c.name: c.evidence for c in judge_document(convergence, changed)}["second order in space"]
    )


def test_lower_residuals_are_judged_of_formulas_and_not_of_one_network(result: dict[str, Any]) -> None:
    name = "lower residual than first order"
    assert _verdict(result, name) == "holds under a condition"
    assert _verdict(_replace_scheme(result, "lemma", "midpoint"), name) == "holds under a condition"
    printed = _replace_scheme(_replace_scheme(result, "midpoint-printed", "midpoint"), "two-hop-printed", "midpoint")
    assert _verdict(printed, name) == "holds"
    assert _verdict(_replace_scheme(result, "midpoint", "two-hop-printed"), name) == "does not hold"


def test_accuracy_is_judged_against_euler_at_every_step(result: dict[str, Any]) -> None:
    name = "more accurate than first order"
    # As printed, two hops solve another equation; the midpoint rule is more accurate than Euler.
    assert _verdict(result, name) == "holds under a condition"
    better, worse = copy.deepcopy(result), copy.deepcopy(result)
    errors = {(row["wanted"], row["fourier"]): row["error"] for row in _rows(result, "euler")}
    for changed, factor in ((better, 0.5), (worse, 2.0)):
        for row in changed["rows"]:
            own = errors[row["wanted"], row["fourier"]]
            if row["scheme"] not in ("euler", "crank-nicolson"):
                row["error"] = None if own is None else factor * own
    assert _verdict(better, name) == "holds"
    assert _verdict(worse, name) == "does not hold"


def test_oscillations_are_there_if_their_onset_is(result: dict[str, Any]) -> None:
    name = "Crank–Nicolson oscillates"
    assert _verdict(result, name) == "holds"
    changed = copy.deepcopy(result)
    changed["meshes"][0]["oscillation"] = 3.0 * changed["meshes"][0]["fourier"]
    assert _verdict(changed, name) == "does not hold"
