from functools import cache

import numpy as np
import pytest

from fluxforge.errors import InputError
from fluxforge.pipeline import discover
from fluxforge.scheme import SKEWED, find
from fluxforge.skew import (
    CORRECTED,
    OBJECTIVES,
    Coefficients,
    Constants,
    Judge,
    apply_law,
    balances_of,
    choose_laws,
    fit_limits,
    least_coercivity,
    make_table,
    read_law,
    score_family,
)
from fluxforge.skew._choose import cost


def constant_network(*psi):
    """Coefficients that do not depend on the face."""
    return Coefficients(((np.zeros((3, 3)), np.array(psi, float)),), np.zeros(3), np.ones(3))


@cache
def exact_tables():
    """Tables of four meshes each, of widths h, h/2 and h/4."""
    return [
        make_table(meshes=4, cells=cells, fields=3, samples=10**9, aspect=4.0, seed=7, law=None, noise=0.0)
        for cells in (100, 400, 1600)
    ]


def tables(law=None):
    formula = None if law is None else read_law(law)
    return [apply_law(table, formula, 0.0, 0) for table in exact_tables()]


def test_a_consistent_flux_is_seen_whatever_its_free_part():
    for free in (0.0, 1.0, 3.0):
        found = fit_limits(constant_network(free, 1.0, -free), tables())
        assert found.holds
        assert (found.normal.fraction, found.total.fraction) == (1, 0)


@pytest.mark.parametrize(
    ("law", "psi"),
    [
        ("rise", (1.0, 0.0, 0.0)),
        ("11/10*flux", (1.0, 1.1, -1.0)),
        ("101/100*flux", (1.0, 1.01, -1.0)),
        ("flux + rise/10", (1.0, 1.0, -0.9)),
    ],
)
def test_data_of_another_flux_are_not_believed_consistent(law, psi):
    found = fit_limits(constant_network(*psi), tables(law))
    assert not found.holds


def test_a_network_that_is_right_in_the_mean_only_is_not_believed():
    tilted = Coefficients(
        ((np.array([[0.0] * 3, [2.0, 0, 0], [0.0] * 3]), np.array([1.0, -0.8, -1.0])),), np.zeros(3), np.ones(3)
    )
    assert fit_limits(tilted, tables()).normal_spread > 0.03


@pytest.fixture(scope="module")
def judge():
    return Judge(n=6, seeds=(1,), problems=2, stretched=4, seed=0)


def test_the_corrected_flux_scores_one(judge):
    scores = judge(CORRECTED)
    assert list(scores.error.values()) == pytest.approx([1.0] * 6, rel=1e-9)
    assert list(scores.step.values()) == pytest.approx([1.0] * 6, rel=1e-9)
    assert scores.coercivity > 0


def test_a_missed_condition_costs(judge):
    flat = judge(Constants(1.0, 1.0, 1.0, 0.05))
    assert flat.coercivity < judge(CORRECTED).coercivity
    unstable = judge(Constants(1.6, 1.35, 1.25, 1.0))
    assert min(unstable.step.values()) < 0.82
    assert cost("error", unstable) > 1.0


def test_the_search_improves_on_the_corrected_flux_and_repeats_itself(judge):
    first, second = (choose_laws(judge, evaluations=24, seed=3) for _ in range(2))
    assert first.laws == second.laws
    for objective in OBJECTIVES:
        own, base = first.scores[objective], judge(CORRECTED)
        assert cost(objective, own) <= cost(objective, base)


@pytest.mark.parametrize("name", SKEWED)
def test_built_in_laws_keep_what_they_claim_on_unseen_meshes(name):
    """A small version of results/skew.json: other seeds, four sizes, errors of the corrected flux in the same run."""
    balances = balances_of(Constants(*map(float, SKEWED[name].constants)))
    for family in ("right", "jittered", "quadrilaterals"):
        ours, base = (
            score_family(family, each, seed=77, sizes=(6, 12, 24, 36), meshes=1, problems=2)
            for each in (balances, balances_of(CORRECTED))
        )
        assert ours.order > 1.85
        assert ours.errors[-1] <= 1.02 * base.errors[-1]
        assert ours.step >= 0.8 * base.step
    assert least_coercivity(balances, seed=77, count=8, n=5) > 0.0
    assert find(name).claims.linear_exact


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"data.law": "T_X"}, "data.law"),
        ({"equation": "advection"}, "equation"),
        ({"search": None}, "search"),
        ({"seeds": 2}, "seeds"),
        ({"data.aspect": 0.5}, "data.aspect"),
        ({"search.route": "stencil"}, "search"),
    ],
)
def test_a_bad_recipe_is_refused_before_there_is_a_folder(tmp_path, changes, field):
    with pytest.raises(InputError, match=field):
        discover("skew", tmp_path / "run", changes=changes)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("law", ["rise", "11/10*flux"])
def test_decoys_are_refused_from_end_to_end(tmp_path, law):
    run = discover("skew", tmp_path / "run", changes={"data.law": law, "expect": "approximation"})
    assert run.verdict == "refused"
    assert run.scheme is None


@pytest.mark.slow
def test_the_recipe_ends_in_a_certified_scheme(tmp_path):
    run = discover("skew", tmp_path / "run")
    assert run.verdict == "recovered"
    assert run.scheme is not None
    assert (tmp_path / "run" / "scheme-step.json").exists()
