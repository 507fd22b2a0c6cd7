"""`fluxforge bench limiter` on triangles: its marching is that of `simulate`, and its rows say what they should."""

import json
import math
from dataclasses import replace

import jax
import numpy as np
import pytest

import fluxforge as ff
from fluxforge.bench import LimiterBench, TriangleBench, triangle_figure
from fluxforge.bench._limiter_figure import SHOWN_LIMITERS
from fluxforge.bench._limiter_triangles import (
    CASES,
    FRACTION,
    CaseRun,
    bench_triangles,
    compare_refinements,
    run_case,
    schemes_on_triangles,
)
from fluxforge.bench._tracers import DEFORMATION
from fluxforge.mesh import Dirichlet, dual, square
from fluxforge.scheme import LIMITERS, limiter_of
from fluxforge.scheme.limiters import R

TURN, SWIRL = CASES[0], CASES[1]


@pytest.mark.parametrize(
    ("case", "name"),
    [
        pytest.param(TURN, "barth-jespersen-ssp2", id="rotation-barth-jespersen-ssp2"),
        pytest.param(SWIRL, "discovered-ramp", id="deformation-discovered-ramp"),
        pytest.param(TURN, "discovered-ramp", id="rotation-discovered-ramp", marks=pytest.mark.slow),
        pytest.param(SWIRL, "barth-jespersen-ssp2", id="deformation-barth-jespersen-ssp2", marks=pytest.mark.slow),
    ],
)
def test_a_case_is_marched_as_simulate_does(case: object, name: str) -> None:
    """A short part of a case: the flow, its time at every stage, the step and the walls are those of a user's run."""
    mesh = square(cells=150, seed=1, engine="builtin")
    short = replace_end(case, 0.2)
    with jax.enable_x64(True):
        ran = run_case(schemes_on_triangles()[name], short, mesh)
    flow = DEFORMATION if math.isfinite(short.period) else short.flow
    run = ff.simulate(
        name,
        mesh,
        equation="advection",
        parameters={"velocity": flow},
        initial=ran.exact,
        boundary=Dirichlet(float(ran.exact.min())),
        end_time=0.2,
        dt_fraction=FRACTION,
    )
    assert run.steps > 5
    # Rounded sums of the size 1; φ has slopes up to 32/c.
    assert np.abs(run.final - ran.final).max() < 1e-11
    assert np.abs(run.final - ran.exact).max() > 0.05


def replace_end(case, end):  # type: ignore[no-untyped-def]
    return case._replace(end=end)


@pytest.fixture(scope="module")
def measured() -> TriangleBench:
    names = ("discovered-ramp", "unbounded-discovered-ramp")
    schemes = {name: each for name, each in schemes_on_triangles().items() if name in names}
    with jax.enable_x64(True):
        return bench_triangles(lambda _: None, schemes, sizes=(100, 300), cases=(replace_end(TURN, 0.25), SWIRL))


def test_rows_have_errors_orders_variations_and_extremes(measured: TriangleBench) -> None:
    document = LimiterBench((), {}, triangles=measured).document()["triangles"]
    assert list(document) == [f"{case.name}, {kind}" for case in (TURN, SWIRL) for kind in ("regular", "irregular")]
    json.dumps(document)
    for problem, schemes in document.items():
        low = 0.1 if problem.startswith("deformation") else 0.0
        for name, row in schemes.items():
            assert {"l1", "total_variation", "minimum", "maximum", "rate"} < set(row)
            assert row["rate"] == pytest.approx(
                2 * math.log(row["coarse_l1"] / row["l1"]) / math.log(row["cells"] / row["coarse_cells"])
            )
            if name == "discovered-ramp":
                # Proved; sums of numbers up to 1 are rounded a few hundred times.
                assert low - 1e-12 <= row["minimum"] <= row["maximum"] <= 1 + 1e-12
    outside = [
        max((0.1 if problem.startswith("deformation") else 0.0) - row["minimum"], row["maximum"] - 1)
        for problem, schemes in document.items()
        for row in [schemes["unbounded-discovered-ramp"]]
    ]
    assert max(outside) > 1e-3


def test_numbers_of_a_row_are_those_of_its_fields() -> None:
    ran = []
    for cells, part in ((60, 0.5), (240, 0.75)):
        graph = dual(square(cells=cells, seed=1, engine="builtin"), Dirichlet(0.0))
        exact = np.where(graph.x[:, 0] < 0.5, 1.0, 0.0)
        ran.append(CaseRun(graph, exact, part * exact))
    row = compare_refinements(TURN, "regular", "any", *ran)
    assert (row.coarse_l1, row.l1) == pytest.approx((0.5, 0.25))
    assert row.total_variation == pytest.approx(0.75)
    assert (row.minimum, row.maximum) == (0.0, 0.75)


def test_discovered_limiters_and_further_ones_take_part() -> None:
    own = limiter_of("mine", LIMITERS["minmod"].phi + 0 * R)
    names = set(schemes_on_triangles({"mine": own}))
    assert {name for name in LIMITERS if name.startswith("discovered")} | {"mine", "cfl-superbee", "van-leer"} < names


def test_the_figure_shows_the_exact_field_and_a_choice_of_schemes(measured: TriangleBench) -> None:
    fields = {name: np.asarray(measured.pictures[0].fields["exact"]) for name in SHOWN_LIMITERS}
    figure = triangle_figure(TriangleBench(pictures=(replace(measured.pictures[0], fields=fields),)))
    titles = [axes.get_title() for axes in figure.axes]
    assert [title for title in titles if title] == list(SHOWN_LIMITERS)
