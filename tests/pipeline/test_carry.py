"""`discover carry`, end to end and small: the table on unseen meshes, the formula, resuming."""

import re
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import linregress

import fluxforge as ff
from fluxforge import recipe
from fluxforge.errors import DiscoveryError
from fluxforge.mesh import dual
from fluxforge.paper import read_carried
from fluxforge.paper.studies._networks import read_networks
from fluxforge.pipeline import _outcome, initial_field, resume, unseen_mesh
from fluxforge.pipeline._carry import Case, best_constants, relative_error
from fluxforge.pipeline._flux_form import distil_coefficients
from fluxforge.run import silent
from fluxforge.run.carry import CarryResult
from fluxforge.stepping import stepper

SMALL = {
    "training.steps": 120,
    "training.batch": 8,
    "training.chunk": 60,
    "data.meshes": 12,
    "data.cells": [40, 80],
    "data.engine": "builtin",
    "network.depth": 2,
    "network.width": 16,
    "evaluation.carry": [100],
    "search.evaluations": 2000,
    "search.restarts": 1,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ff.pipeline.Run]:
    with pytest.MonkeyPatch.context() as patch:
        # No claim is certified here: one family of meshes instead of all.
        patch.setattr(_outcome, "FAMILIES", ("squares",))
        yield ff.discover("carry", tmp_path_factory.mktemp("reproduction") / "carry", changes=SMALL)


def test_the_network_beats_its_integrator_on_a_mesh_it_has_not_seen(run: ff.pipeline.Run) -> None:
    result = run.result
    assert isinstance(result, CarryResult)
    assert {row.field for row in result.carry} == {"smooth", "noise"}
    for row in result.carry:
        assert row.network is not None
        assert row.midpoint is not None
        assert row.network < 0.7 * row.midpoint
        assert not row.blew_up
        assert row.conserved is not None
        # A sum over a hundred cells.
        assert row.conserved < 1e-13


def test_the_formula_of_a_network_is_a_scheme_that_simulates(run: ff.pipeline.Run) -> None:
    assert run.verdict == "approximation"
    assert run.scheme is not None
    mesh = ff.mesh.square(cells=60, engine="builtin")
    field = "sin(pi*x)*sin(pi*y)"
    formula, network = (ff.simulate(each, mesh, initial=field, steps=5) for each in (run.scheme, run.network))
    change = np.abs(network.final - network.fields[0]).max()
    assert np.abs(formula.final - network.final).max() < 0.02 * change
    # A panel per kind of field, and one of the coefficients.
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    first = re.search(r"</h1>\s*<p class=\"lead\">([^<]*)</p>", page)
    assert first is not None
    assert first[1].startswith("Explicit two-point flux;")
    links = set(re.findall(r'href="([^"#][^"]*)"', page))
    assert {"candidate.json", "candidate-certificate.json", "metrics.jsonl", "carry.svg"} <= links
    assert all((run.folder / name).is_file() for name in links)


def test_its_coefficients_are_drawn_and_the_study_of_convergence_finds_it(run: ff.pipeline.Run) -> None:
    result = run.result
    assert isinstance(result, CarryResult)
    assert result.points is not None
    (points,) = result.points.values()
    assert len(points.total) == len(points.network) == len(points.formula) == 240
    # The longer the local step, the more the second stage is damped.
    slope = linregress(points.total, points.network)
    assert slope.slope < -10 * slope.stderr
    assert {row.cells for row in result.effective} == {64, 256, 1024, 4096}
    assert list(read_networks(run.folder.parent / "convergence")) == ["network-carry"]
    carried = read_carried(run.folder.parent)
    assert carried is not None
    assert isinstance(run.result, CarryResult)
    assert carried.rows == run.result.carry


def test_a_finished_run_is_read_and_its_files_restored(run: ff.pipeline.Run) -> None:
    (run.folder / "report.html").unlink()
    (run.folder / "candidate.json").unlink()
    assert ff.load_run(run.folder).document == run.document
    again = resume(run.folder)
    assert again.document == run.document
    assert (run.folder / "report.html").exists()
    assert again.scheme == run.scheme


def test_formulas_that_keep_too_little_are_refused(run: ff.pipeline.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxforge.pipeline._flux_form.LEAST_KEPT", 1.5)
    spec = recipe.override(recipe.load("carry"), SMALL)
    network = run.network.network
    with pytest.raises(DiscoveryError, match="of the network's gain"):
        distil_coefficients(network, {"alpha": 1.0}, spec, silent)  # type: ignore[arg-type]


def test_the_resolved_step_is_what_many_short_steps_give() -> None:
    case = Case(dual(unseen_mesh(100, 0)), ff.equation("heat"), {"alpha": 1.0}, 0.5)
    for kind in ("smooth", "noise"):
        T = initial_field(case.graph, kind, 0)
        fine = np.asarray(stepper("rk4", case.graph, case.dt / 40).rollout(T, 40))
        # Forty steps of order four at a fortieth of the Fourier step, against a tolerance of 1e-9.
        assert relative_error(case.resolve(T), fine, T) < 1e-7


def test_the_best_constants_are_at_least_as_good_as_ones(run: ff.pipeline.Run) -> None:
    network = run.network.network
    case = Case(dual(unseen_mesh(100, 0)), ff.equation("heat"), {"alpha": 1.0}, 0.5)
    T = initial_field(case.graph, "noise", 0)
    exact = case.resolve(T)
    grid = [relative_error(case.weigh_fluxes(network, [float(c)])(T), exact, T) for c in np.linspace(0.4, 1.2, 81)]  # type: ignore[arg-type]
    least = best_constants(network, case, T, exact)  # type: ignore[arg-type]
    assert least <= min(grid) * (1 + 1e-6)
    assert least < grid[60]
