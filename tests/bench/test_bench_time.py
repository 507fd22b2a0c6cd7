"""`fluxforge bench time`: its cases, the polynomials fitted, the rows, and what is concluded from them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

from fluxforge.bench import bench_time, work_precision_figure
from fluxforge.bench._carried import kept_formulas, read_carried
from fluxforge.bench._time_case import TimeCase, best_polynomial, change_error, make_case
from fluxforge.bench._time_methods import carried_method, carried_substeps, polynomial_method, tableau_method
from fluxforge.bench._time_rows import TimeRow, compare_fixed, conclude
from fluxforge.errors import InputError
from fluxforge.scheme import TABLEAUX
from fluxforge.stepping import stepper


@pytest.fixture(scope="module")
def case() -> TimeCase:
    return make_case("graded", 150)


def test_the_answer_is_the_matrix_exponential(case: TimeCase) -> None:
    T = case.field("noise")
    for fourier in (0.5, 60.0):
        # A hundred terms of a series whose coefficients are below 1.
        assert np.abs(case.resolve(T, fourier) - expm(fourier * case.A.toarray()) @ T).max() < 1e-12


def test_all_eigenvalues_lie_within_reach(case: TimeCase) -> None:
    least = np.linalg.eigvalsh(case.symmetric.toarray())[0]
    assert -case.reach <= least < -0.97 * case.reach


def test_a_graded_mesh_has_cells_of_very_different_size() -> None:
    assert make_case("graded", 600).size_ratio > 50


@pytest.mark.parametrize("name", ["carry-2", "carry-3-order-2", "stages-4"])
def test_kept_formulas_step_as_their_schemes_do(case: TimeCase, name: str) -> None:
    kept, T = kept_formulas()[name], case.field("noise")
    fourier = kept.fourier[1]
    after = carried_method(kept).make(case, fourier)(T)
    wanted = np.asarray(stepper(kept.scheme(), case.graph, fourier * case.fourier_step)(T))
    assert np.abs(after - wanted).max() < 1e-12
    assert np.abs(after - T).max() > 0.01
    assert carried_substeps(kept, fourier)[0] == 1
    assert carried_substeps(kept, 2.5 * fourier)[0] == 3


def test_constants_that_know_the_answer_err_least_among_polynomials_of_their_degree(case: TimeCase) -> None:
    T = case.field("noise")
    exact = case.resolve(T, 0.5)
    best = polynomial_method("oracle", "", best_polynomial(case, T, exact, fourier=0.5, degree=2)).make(case, 0.5)(T)
    A = 0.5 * case.A
    second = A @ (A @ T)
    tried = [change_error(T + A @ T + c * second, exact, T) for c in np.linspace(0.2, 0.6, 401)]
    assert change_error(best, exact, T) <= min(tried) * (1 + 1e-3)
    midpoint = tableau_method("midpoint", TABLEAUX["midpoint"]).make(case, 0.5)(T)
    assert np.abs(midpoint - (T + A @ T + 0.5 * second)).max() < 1e-14
    assert change_error(best, exact, T) < change_error(midpoint, exact, T)


@pytest.fixture(scope="module", autouse=True)
def few_linear_programs() -> Iterator[None]:
    """Those of higher degrees take seconds each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fluxforge.bench._time_methods.MOST_OPTIMAL", 4)
        yield


@pytest.fixture(scope="module")
def rows() -> tuple[TimeRow, ...]:
    return bench_time(120, meshes=["irregular"], end_time=None).rows


def test_every_rival_is_in_the_table_and_converges(rows: tuple[TimeRow, ...]) -> None:
    families = {row.family for row in rows}
    assert families == {
        *("midpoint", "rk4", "rkl2", "rkc2", "optimal", "minimax", "fitted", "chebyshev"),
        *("krylov", "oracle", "crank-nicolson", "tr-bdf2", "local"),
    }
    errors = {(row.method, row.substeps, row.field, row.fourier): row.error for row in rows}
    for field in ("smooth", "noise"):
        assert (errors["chebyshev-16", 1, field, 4.0] or 1.0) < 1e-6
        assert (errors["krylov-16", 1, field, 4.0] or 1.0) < 1e-6
        # What knows the answer is not above what does not.
        assert (errors["oracle-2", 1, field, 0.5] or 1.0) <= 1.001 * (errors["fitted-2", 1, field, 0.5] or 0.0)
        assert (errors["carry-2", 1, field, 0.5] or 1.0) < (errors["midpoint", 1, field, 0.5] or 0.0)
        assert (errors["crank-nicolson", 4, field, 4.0] or 1.0) < 0.2 * (errors["crank-nicolson", 1, field, 4.0] or 0.0)
    assert len(work_precision_figure(rows, fourier=4.0).axes) == 2


def test_ratios_are_to_the_best_fixed_polynomial_with_no_more_applications(rows: tuple[TimeRow, ...]) -> None:
    local = next(row for row in rows if row.family == "local" and row.substeps == 1)
    fixed = replace(local, family="rkl2", method="a", error=2.0 * (local.error or 0.0))
    better = replace(fixed, method="b", error=0.5 * (local.error or 0.0))
    costly = replace(better, method="c", applications=2 * local.applications, error=0.0)
    oracle = replace(better, family="oracle", error=0.0)
    comparison = compare_fixed(local, [fixed, costly, oracle])
    assert comparison is not None
    assert comparison[0] == pytest.approx(0.5)
    assert comparison[1].method == "a"
    assert "in 1 of 1 cases" in conclude([local, fixed], [])[-1]
    assert "in 0 of 1 cases" in conclude([local, fixed, better], [])[-1]


def test_runs_have_equal_work_and_the_best_of_them_are_exact() -> None:
    measured = bench_time(60, meshes=["irregular"], end_time=0.02)
    runs = measured.runs
    said = next(each for each in measured.conclusions if "run of" in each and "carry-2, error over" in each)
    assert "(chebyshev-64)" in said
    blown = [replace(row, error=None) if row.family == "local" else row for row in runs]
    assert all("blew up" in each for each in conclude([], blown))
    for budget in {row.budget for row in runs}:
        alike = [row for row in runs if row.budget == budget and row.family not in ("crank-nicolson", "tr-bdf2")]
        # A run is a whole number of steps of up to 64 stages.
        work = [row.applications for row in alike if row.method not in ("chebyshev-64", "krylov-60")]
        assert max(work) - min(work) <= 16
    errors = {(row.method, row.budget, row.field): row.error for row in runs}
    assert (errors["chebyshev-64", 4.0, "noise"] or 1.0) < 1e-12
    # Each of about 90 steps errs by less than what a single one does.
    assert 1e-6 < (errors["carry-2", 4.0, "noise"] or 1.0) < 1e-3


def test_names_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mesh: there is no mesh 'round'"):
        bench_time(100, meshes=["round"])
    with pytest.raises(InputError, match="cells"):
        bench_time(3)
    with pytest.raises(InputError):
        read_carried(tmp_path)
