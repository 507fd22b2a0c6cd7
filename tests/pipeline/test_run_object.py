"""`Run`: what `ff.discover` returns and `ff.load_run` reads, on real networks trained for a few steps."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from test_fisher import FISHER, R, reacting, spec_of

import fluxforge as ff
import toy_pipeline
from fluxforge import recipe
from fluxforge.data import source
from fluxforge.errors import DocumentError, InputError
from fluxforge.mesh import jittered, squares
from fluxforge.pipeline import (
    Discovery,
    Generalisation,
    Measured,
    MetricColumns,
    Run,
    _generalisation,
    discover,
    resume,
    run_folder,
    to_document,
)
from fluxforge.run.result import Arm, Extrapolated
from fluxforge.scheme import find, save
from fluxforge.stepping import TrainedNetwork, network_stepper
from fluxforge.train import train

ALPHA = 0.7
FEW = {
    "diffusivity": ALPHA,
    "network.width": 4,
    "network.depth": 1,
    "training.steps": 20,
    "training.chunk": 10,
    "training.checkpoint_every": 10,
    "training.batch": 4,
    "seeds": 2,
}
DOCUMENT: dict[str, Any] = {
    "recipe": "first-order",
    "seed": 0,
    "member": 1,
    "seconds": {"train": 1.0},
    "verdict": "recovered",
    "recovered": True,
    "reasons": ["yes: <of course>"],
    "explained": {"least": 0.993, "by_step": {"0.1": 0.993}},
    "certificate": {
        "scheme": "euler",
        "verdict": "no claims",
        "linear": True,
        "conservative": True,
        "time_order": 1.0,
        "lines": [{"property": "linear", "verdict": "holds", "evidence": "e", "method": "m"}],
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two seeds, real but for its formula, which is Euler's."""
    path = tmp_path_factory.mktemp("runs") / "run"
    spec = recipe.override(recipe.load("first-order"), FEW)
    with run_folder(path, spec, warn=pytest.fail) as held:
        train(spec, source(spec), folder=held)
        save(find("euler"), path / "scheme.json")
        held.finish("discovery", DOCUMENT)
    return path


def test_a_run_has_its_verdict_scheme_certificate_and_document(folder: Path) -> None:
    run = ff.load_run(folder)
    assert run.verdict == "recovered"
    assert run.document == DOCUMENT
    assert run.folder == folder
    assert run.scheme is not None
    assert run.scheme.stages == find("euler").stages
    assert run.certificate is not None
    assert (run.certificate.verdict, run.certificate.time_order) == ("no claims", 1.0)
    assert run.certificate.lines[0].property == "linear"
    assert "<td>holds</td><td>linear</td><td>e</td>" in run.certificate._repr_html_()


def test_loading_a_run_reads_no_network_before_it_is_used(folder: Path, tmp_path: Path) -> None:
    """A run whose checkpoints are gone is loaded all the same; its network is refused when it is asked for."""
    shutil.copytree(folder, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    run = ff.load_run(tmp_path / "run")
    assert run.verdict == "recovered"
    assert "first-order" in repr(run)
    with pytest.raises(InputError, match="no checkpoint"):
        _ = run.network


def test_the_network_is_the_one_of_least_loss_with_the_parameters_of_the_recipe(folder: Path) -> None:
    """On a mesh whose cells are far from unit volume, against the stepper of the same network."""
    run = ff.load_run(folder)
    spec, mesh = run.recipe, jittered(4, 0.2, 1)
    with run_folder(folder, spec, warn=pytest.fail) as held:
        second = train(spec, source(spec), folder=held).member(1)
    graph = ff.dual(mesh, ff.Dirichlet(1.0))
    T = graph.x[:, 0] ** 2
    with jax.enable_x64(True):
        wanted = np.asarray(network_stepper(second, graph, 1e-3, diffusivity=ALPHA, source=2.0)(T))
    stepped = run.network(mesh, T, dt=1e-3, boundary=ff.Dirichlet(1.0), source=2.0)
    # The same program on the same numbers, but for a compilation of its own.
    np.testing.assert_allclose(stepped, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    one = ff.simulate(run.network, mesh, initial=T, source=2.0, boundary=ff.Dirichlet(1.0), dt=1e-3, steps=1)
    np.testing.assert_allclose(one.fields[-1], wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    assert one.dt_limit is None


def test_a_network_of_an_equation_with_a_length_of_its_own_is_not_scaled(tmp_path: Path) -> None:
    """A network that computes Fisher's scheme with its r, on cells of volume 1/16: scaled to 1 it would have r/16."""
    spec = spec_of(FISHER, tmp_path)
    equation = recipe.equation_of(spec)
    network = TrainedNetwork("fisher", reacting(spec, 1), equation, {"D": 1.0, "r": R})
    how: dict[str, Any] = {"initial": "x*y", "boundary": ff.Neumann(), "dt": 1e-3, "steps": 3}
    ours = ff.simulate(network, squares(4), **how).fields[-1]
    theirs = ff.simulate(find("euler", equation), squares(4), parameters={"D": 1.0, "r": R}, **how).fields[-1]
    # The gauge of the fake cancels in double precision; 1e-12 is four digits above round-off of fields of size one.
    assert ours == pytest.approx(theirs, abs=1e-12)
    with pytest.raises(InputError, match="a trained network has its own, 'fisher'"):
        ff.simulate(network, squares(4), equation="heat")
    with pytest.raises(InputError, match=r"r = 2\.0: this network was trained with r = 1\.5"):
        ff.simulate(network, squares(4), parameters={"r": 2.0}, **how)


def test_metrics_are_columns_with_a_row_per_record(folder: Path) -> None:
    metrics = ff.load_run(folder).metrics
    assert metrics["step"].tolist() == [10, 20]
    assert metrics["supervised"].shape == (2, 2)
    assert (metrics["supervised"] > 0).all()
    assert metrics["learning_rate"].shape == (2,)
    assert "step" in repr(metrics)


def test_columns_of_unequal_records_are_filled_with_nan() -> None:
    columns = MetricColumns([{"step": 1, "a": [1.0, None]}, {"step": 2, "b": 3}])
    np.testing.assert_array_equal(columns["a"], [[1.0, np.nan], [np.nan, np.nan]])
    np.testing.assert_array_equal(columns["b"], [np.nan, 3.0])
    assert dict(MetricColumns([])) == {}
    assert repr(columns) == "MetricColumns(2 rows, step, a, b)"
    assert repr(MetricColumns([])) == "MetricColumns(0 rows)"


def test_pandas_is_asked_for_by_name_where_it_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = ff.load_run(folder).metrics
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        metrics.to_pandas()


def test_a_table_has_a_column_per_seed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for pandas, which need not be installed."""
    frames: list[dict[str, np.ndarray]] = []
    monkeypatch.setitem(sys.modules, "pandas", type("pandas", (), {"DataFrame": frames.append}))
    ff.load_run(folder).metrics.to_pandas()
    assert {"step", "supervised[0]", "supervised[1]", "learning_rate"} <= frames[0].keys()
    assert all(column.shape == (2,) for column in frames[0].values())


def test_a_run_has_a_repr_of_one_line_and_an_html_page(folder: Path) -> None:
    run = ff.load_run(folder)
    assert repr(run) == f"Run(first-order: recovered, 99.3% of the network's step explained; {folder})"
    page = run._repr_html_()
    assert "<math" in page
    assert "scheme.json</a>" in page
    assert "certificate.json" not in page  # there is no such file here
    (folder / "certificate.json").write_text("{}")
    assert "certificate.json</a>" in run._repr_html_()


def test_a_report_is_opened_in_the_browser_and_missed_where_there_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run = ff.load_run(folder)
    with pytest.raises(InputError, match="the run has no report"):
        run.open_report()
    (folder / "report.html").write_text("<p>a report</p>")
    assert run.open_report() == folder / "report.html"
    assert opened == [(folder / "report.html").resolve().as_uri()]


def test_what_is_no_finished_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        ff.load_run(tmp_path / "nowhere")
    spec = recipe.load("first-order")
    with run_folder(tmp_path / "begun", spec, warn=pytest.fail):
        pass
    with pytest.raises(InputError, match="not finished: continue it with fluxforge discover --resume"):
        ff.load_run(tmp_path / "begun")
    with run_folder(tmp_path / "begun", spec, warn=pytest.fail) as held:
        held.finish("discovery", {**DOCUMENT, "reasons": 3})
    with pytest.raises(DocumentError, match="reasons"):
        _ = ff.load_run(tmp_path / "begun").verdict
    with run_folder(tmp_path / "begun", spec, warn=pytest.fail) as held:
        held.finish("discovery", DOCUMENT)
    with pytest.raises(InputError, match="no checkpoint"):
        _ = ff.load_run(tmp_path / "begun").network


def test_discover_resume_and_load_run_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record gives the same document again, byte for byte."""
    toy_pipeline.install(monkeypatch.setattr)
    first = discover("first-order", tmp_path / "run")
    for run in (first, resume(tmp_path / "run"), ff.load_run(tmp_path / "run")):
        assert isinstance(run, Run)
        assert json.dumps(run.document) == json.dumps(first.document)
        assert isinstance(run.result, Discovery)
        assert json.dumps(to_document(run.result)) == json.dumps(first.document)
        assert run.scheme is not None
        assert run.scheme.name == "discovered-first-order"
        assert run.certificate is not None


def arm(error: float) -> Arm:
    two = (error, 2 * error)
    return Arm(
        train_mae=two,
        ood_mse=two,
        ood_worst=two,
        rollout_mse=two,
        nonzeros=(3, 4),
        failed=(False, False),
        skipped_steps=(0, 0),
        last_layer=(0.1, 0.2),
    )


def test_a_recipe_with_arms_gives_a_run_with_networks_by_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its networks are trained; their measurements are given."""
    errors = {"sparse": (0.1, 0.2), "dense": (0.3, 0.4)}
    beyond = Extrapolated(
        fourier={"0.1": errors, "1": errors, "stability limit": errors},
        temperature_range={"1": errors, "2": errors},
        boundary={"insulated": errors},
        stability_limit_over_fourier=(1.0, 2.0),
    )
    given = Measured(arms={"sparse": arm(0.001), "dense": arm(0.1)}, parameters=7, extrapolation=beyond)
    monkeypatch.setattr(_generalisation, "measure", lambda *_: given)
    few = {"seeds": 2, "training.steps": 4, "training.chunk": 4, "training.batch": 4, "network.width": 4}
    run = discover(recipe.override(recipe.load("generalisation"), few), tmp_path / "run")
    assert run.document["summary"]["dense"]["stuck"] == 2
    assert run.document["summary"]["sparse"]["train_mae"] == {"q1": 0.00125, "median": 0.0015, "q3": 0.00175}
    assert list(run.document)[:5] == ["recipe", "seeds", "sparse", "dense", "parameters"]
    assert list(run.document)[5:] == ["extrapolation", "seconds", "summary"]
    assert isinstance(run.result, Generalisation)
    assert run.result.measured.arms.keys() == {"sparse", "dense"}
    assert json.dumps(to_document(run.result)) == json.dumps(run.document)
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert "unseen meshes (MSE): sparse 0.0015, dense 0.15. Stuck in training: 2 of dense." in page
    assert set(re.findall(r'href="([^"#]+)"', page)) <= {path.name for path in run.folder.iterdir()}
    assert page.count("<svg") == 2
    assert (run.verdict, run.scheme, run.certificate) == (None, None, None)
    assert "2 arms of 2 seeds" in repr(run)
    assert "generalisation.png</a>" in run._repr_html_()
    with pytest.raises(InputError, match=r"use one of run\.networks"):
        _ = run.network
    again = ff.load_run(tmp_path / "run")
    assert again.document == run.document
    assert [len(each) for each in again.networks.values()] == [2, 2]


def test_a_network_whose_last_checkpoint_is_damaged_is_trained_again_with_a_warning(
    folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(folder, copy)
    before = ff.load_run(copy).network
    last = max((copy / "checkpoints").glob("*.safetensors"))
    last.write_bytes(b"damaged")
    with pytest.warns(UserWarning, match=re.escape(last.name)):
        again = ff.load_run(copy).network
    mesh = ff.mesh.squares(3)
    np.testing.assert_array_equal(again(mesh, "x", dt=0.01), before(mesh, "x", dt=0.01))
    assert last.read_bytes() == b"damaged"


def test_a_network_is_read_while_another_process_has_the_folder_and_nothing_is_written(folder: Path) -> None:
    """As of a run that somebody else shares, whose folder cannot be locked."""
    with run_folder(folder, ff.load_run(folder).recipe, warn=pytest.fail):
        before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
        assert ff.load_run(folder).network(squares(3), "x", dt=0.01).shape == (9,)
        assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
