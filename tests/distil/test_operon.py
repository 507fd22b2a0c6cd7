"""PyOperon: trees, seeds, threads, failures, and recovery of known formulas."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pyoperon
import pytest
import sympy as sp
from symbolic_tables import T_N, T_P, A, S, T, V, delta, dt, flux_table, is_flux, is_update, update_table, z

from fluxforge.distil import OPERATORS, Search, choose_knee, engine, search_front, tabulate
from fluxforge.distil import _engines as run
from fluxforge.distil._engines import Operon, to_sympy
from fluxforge.distil._table import predict
from fluxforge.errors import FluxforgeError
from fluxforge.scheme import symbol

SMALL = Search(restarts=1, population=100, evaluations=500, rows=100)


def test_the_flux_is_at_the_knee():
    best = choose_knee(search_front(Operon(), flux_table(), Search(restarts=1), seed=0))
    assert is_flux(best.expression)
    assert best.complexity == 9
    assert float(best.expression.subs({A: 1, delta: 1, T_N: 1, T_P: 0})) == pytest.approx(-0.3, rel=0.02)


def test_the_update_is_at_the_knee():
    best = choose_knee(search_front(Operon(), update_table(), Search(restarts=2), seed=0))
    assert is_update("whole")(best.expression)
    assert float(best.expression.subs({T: 0, S: 0, dt: 1, V: 1, z: 1})) == pytest.approx(2.0, rel=0.02)


def test_the_same_seed_gives_the_same_front_whatever_the_threads(monkeypatch):
    table = flux_table(error=0.03, rows=500)
    fronts = []
    for threads in (1, 1, 3):
        monkeypatch.setattr(run, "count_threads", lambda count=threads: count)
        fronts.append(search_front(Operon(), table, SMALL, seed=5))
    assert fronts[0] == fronts[1] == fronts[2]
    assert search_front(Operon(), table, SMALL, seed=6) != fronts[0]


@pytest.mark.parametrize("operators", [("+", "-", "*", "/"), OPERATORS], ids=["arithmetic", "all"])
def test_trees_become_the_expressions_that_operon_evaluates(operators):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2, (60, 3))
    table = tabulate("abc", X, np.exp(-X[:, 0]) * np.sqrt(X[:, 1]) + np.abs(np.sin(3 * X[:, 2])) - np.log(X[:, 0]))
    search = Search(operators=operators, population=150, evaluations=300)
    evolution = run.Evolution(pyoperon, table, search, seed=1)
    evolution.run(lambda: False)
    scaled = tabulate("abc", X / np.sqrt(np.mean(X**2, axis=0)), table.y)
    columns = {hash_: symbol(name) for name, hash_ in zip("abc", evolution.variables("abc"), strict=True)}
    dataset, whole = pyoperon.Dataset(np.asfortranarray(scaled.X)), pyoperon.Range(0, 60)
    hashes = {v.Index: v.Hash for v in dataset.Variables}
    compared, seen = 0, set()
    for individual in evolution._algorithm.Individuals:
        nodes = list(individual.Genotype.Nodes)
        for node in nodes:
            if node.IsVariable:
                node.HashValue = hashes[list(columns).index(node.HashValue)]
        f = pyoperon.Evaluate(pyoperon.Tree(nodes).UpdateNodes(), dataset, whole)
        ours = predict(to_sympy(nodes, {hashes[k]: symbol(name) for k, name in enumerate("abc")}), scaled)
        if np.max(np.abs(ours)) < 1e3 and np.all(np.isfinite(f)):
            np.testing.assert_allclose(f, ours, rtol=2e-3, atol=2e-3 * np.max(np.abs(ours)))
            compared += 1
            seen |= {node.Type.name for node in nodes}
    assert compared > 50
    assert {run.NODE_TYPES[name] for name in operators} <= seen


def test_units_of_any_size_are_found():
    table = flux_table(c=-3e7, error=0.01)
    tiny = tabulate(table.names, table.X * [1e-6, 1e6, 1, 1], 2e-5 + table.y * 1e-12)
    best = choose_knee(search_front(Operon(), tiny, Search(restarts=1), seed=0))
    assert best.error < 0.02
    assert is_flux(best.expression - best.expression.as_coeff_Add()[0])


def test_the_time_limit_stops_an_evolution_that_would_not_end():
    endless = Search(restarts=1, evaluations=10**10, population=50, rows=50, seconds=0.5)
    front = search_front(Operon(), flux_table(rows=100), endless, seed=0)
    assert len(front) > 0
    assert front.ended_by_clock


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT as in a terminal: processes that a shell starts in the background ignore it, and would never end here."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_stops_the_evolution():
    endless = Search(restarts=1, evaluations=10**10, population=50, rows=50, seconds=1e6)
    alarm = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    alarm.start()
    with pytest.raises(KeyboardInterrupt):
        search_front(Operon(), flux_table(rows=100), endless, seed=0)
    assert not any(thread.name.startswith("ThreadPoolExecutor") for thread in threading.enumerate())


def test_an_operator_that_is_not_allowed_does_not_appear():
    front = search_front(
        Operon(), flux_table(rows=200), Search(operators=("+", "-"), restarts=1, population=50), seed=0
    )
    for candidate in front:
        for product in candidate.expression.atoms(sp.Mul):
            assert len(product.free_symbols) == 1


def test_a_library_that_cannot_be_loaded_is_one_line(monkeypatch):
    def fail(name):
        raise ImportError("libfoo.so.1: cannot open shared object file")

    monkeypatch.setattr("fluxforge.distil._engines.import_module", fail)
    with pytest.raises(FluxforgeError, match=r"PyOperon cannot be loaded \(libfoo.so.1"):
        search_front(Operon(), flux_table(rows=100), SMALL, seed=0)


def test_importing_distil_imports_no_search_engine():
    code = (
        "import sys, fluxforge.distil; print(sorted({'pyoperon', 'sklearn', 'pysr', 'juliacall'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


ERRORS = (0.001, 0.01, 0.03)


def gauge(seed, largest):
    rng = np.random.default_rng(1000 + seed)
    return float(rng.uniform(0.1, largest) * rng.choice([-1, 1]))


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("seed", range(4))
def test_the_flux_is_recovered(seed, error):
    table = flux_table(c=gauge(seed, 3.0), error=error, seed=seed)
    assert is_flux(choose_knee(search_front(engine("operon"), table, Search(), seed=seed)).expression)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("kind", ["whole", "change", "rate"])
@pytest.mark.parametrize("seed", range(4))
def test_the_update_is_recovered(seed, kind, error):
    table = update_table(kind, g=gauge(seed, 4.0), error=error, seed=seed)
    assert is_update(kind)(choose_knee(search_front(engine("operon"), table, Search(), seed=seed)).expression)
