"""`fluxforge.bench.bench_equations`: each problem at toy size, with bounds that follow from theory."""

import math
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from fluxforge.bench import GROUPS, SIZES, Row, _equations, _fipy_problems, bench_equations
from fluxforge.bench._diffusion_problems import (
    FISHER_FROM,
    FISHER_LENGTH,
    FISHER_TO,
    K1,
    K2,
    LAYER_FLUX,
    anisotropic,
    fisher_wave,
    heat_kernel,
    two_layers,
)
from fluxforge.bench._rows import add_orders, cell_means, front_position, row_of_squares, total_variation
from fluxforge.bench._tracers import TRACERS, slotted_cylinder
from fluxforge.bench._transport_problems import SHOCK_FROM, SHOCK_TO, burgers, deformation_row, rotation
from fluxforge.errors import InputError, NumericalError
from fluxforge.mesh import dual, right_triangles, squares

QUICK = SIZES["quick"]
needs_fipy = pytest.mark.skipif(find_spec("fipy") is None, reason="FiPy: pip install 'fluxforge[bench]'")


def by_problem_and_scheme(rows: list[Row]) -> dict[tuple[str, str, str], list[Row]]:
    studies: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        studies.setdefault((row.problem, row.scheme, row.mesh), []).append(row)
    return studies


def check_heat_kernel(rows: list[Row]) -> None:
    for study in by_problem_and_scheme(rows).values():
        assert len(study) >= 4
        assert [row.order for row in study[-2:]] == pytest.approx([2.0, 2.0], abs=0.2)


def check_layers(rows: list[Row]) -> None:
    """Exact but for the condition number (k2/k1) n² of about 10⁴ to 10⁶ times a few roundings; the arithmetic mean is
    off by its known factor: the face between the layers has a resistance that is too small by `missing`."""
    for row in rows:
        assert row.error is not None
        assert row.measured is not None
        if row.scheme == "arithmetic":
            missing = (K2 - K1) ** 2 / (2 * K1 * K2 * (K1 + K2)) / math.isqrt(row.cells)
            assert row.measured == pytest.approx(LAYER_FLUX / (1 - missing * LAYER_FLUX), rel=1e-9)
            assert row.error > missing
        else:
            assert row.error < 1e-9
            assert row.measured == pytest.approx(row.exact, rel=1e-9)


def check_fisher(rows: list[Row]) -> None:
    """Within the third term of the series and the lattice's h²/12 of Bramson's two terms, and below the limit 2."""
    third = 3 * math.sqrt(math.pi) * (FISHER_FROM**-0.5 - FISHER_TO**-0.5) / (FISHER_TO - FISHER_FROM)
    for row in rows:
        assert row.error is not None
        assert row.measured is not None
        assert row.error < third + (FISHER_LENGTH / row.cells) ** 2 / 12
        assert row.measured < 2.0


def check_burgers(rows: list[Row]) -> None:
    """The front is known to a cell; the largest jump of a fan falls with h, where an entropy violation stays."""
    for (problem, _, _), study in by_problem_and_scheme(rows).items():
        for row in study:
            assert row.measured is not None
            assert row.exact is not None
            assert row.minimum is not None
            assert row.maximum is not None
            low, high = (0.2, 1.2) if problem == "burgers, shock" else (-1.0, 1.0)
            assert low - 1e-12 < row.minimum
            assert row.maximum < high + 1e-12
            if problem == "burgers, shock":
                assert abs(row.measured - row.exact) < 1 / row.cells / (SHOCK_TO - SHOCK_FROM)
        coarse, fine = study[-2:]
        assert fine.order is not None
        assert fine.order > 0.6
        if problem == "burgers, transonic fan":
            assert fine.measured < 0.6 * coarse.measured  # type: ignore[operator]


def check_rotation(rows: list[Row]) -> None:
    """Within the data to the roundings of thousands of steps; sharper limiters have smaller errors."""
    error = {(row.problem, row.mesh, row.scheme): row.error for row in rows}
    for row in rows:
        assert row.below is not None
        assert row.above is not None
        assert row.variation is not None
        assert max(row.below, row.above) < 1e-10
        # In two dimensions no scheme of second order keeps the total variation from growing (Goodman, LeVeque, 1985),
        # superbee among them: 1.003 on 128 × 128 squares.
        if row.scheme == "upwind":
            assert row.variation < 1.0
    for problem in ("rotation, cone", "rotation, slotted cylinder"):
        on_squares = ("superbee-ssp2", "van-leer-ssp2", "minmod-ssp2", "upwind")
        falling = [error[problem, "squares", scheme] for scheme in on_squares]
        assert falling == sorted(falling)
        # A field that has not come back to where it was overlaps little with the initial one: an error of nearly 2.
        assert falling[0] < 1.0  # type: ignore[operator]
        assert error[problem, "right", "barth-jespersen-ssp2"] < error[problem, "right", "upwind"]  # type: ignore[operator]


def check_anisotropic(rows: list[Row]) -> None:
    for (_, scheme, _), study in by_problem_and_scheme(rows).items():
        below, above = study[-1].below, study[-1].above
        assert below is not None
        assert above is not None
        if scheme.startswith("two-point"):
            assert below == above == 0.0
        else:
            assert 0.0005 < below < 0.1
        if scheme == "corrected":
            assert study[-1].order > 1.6  # type: ignore[operator]
        if scheme == "two-point":
            assert abs(study[-1].order) < 0.3  # type: ignore[operator]


def check_deformation(rows: list[Row]) -> None:
    error = {(row.problem, row.scheme): row.error for row in rows}
    for problem, _ in error:
        assert 0.0 < error[problem, "van-leer-ssp2"] < error[problem, "upwind"] < 1.0  # type: ignore[operator]


def check_peer(rows: list[Row]) -> None:
    """The same two-point fluxes: apart by the roundings of a step, times its condition number, times the steps.

    1 + Δt λ of the step's matrix is below 100 on all sizes, since Δt is proportional to h².
    """
    for row in rows:
        assert row.steps is not None
        assert row.fipy_difference is not None
        assert row.fipy_difference < 100 * row.steps * 10 * np.finfo(float).eps
        assert row.fipy_error == pytest.approx(row.error, rel=1e-8)


def check_peer_orders(rows: list[Row], least: float) -> None:
    check_peer(rows)
    assert all(study[-1].order > least for study in by_problem_and_scheme(rows).values())  # type: ignore[operator]


def test_the_heat_kernel_is_met_to_second_order() -> None:
    check_heat_kernel(heat_kernel(replace(QUICK, heat_kernel=(4, 8, 16, 32))))


def test_the_contact_flux_is_exact_with_harmonic_means() -> None:
    check_layers(two_layers(QUICK))


def test_fishers_wave_has_the_speed_of_theory() -> None:
    check_fisher(fisher_wave(QUICK))


def test_shocks_move_as_rankine_and_hugoniot_say_and_fans_have_no_jump() -> None:
    check_burgers(burgers(QUICK))


def test_what_is_turned_once_stays_within_its_bounds() -> None:
    check_rotation(rotation(replace(QUICK, rotation=16)))


def test_what_schemes_do_to_minimum_and_maximum() -> None:
    check_anisotropic(anisotropic(QUICK))


def test_a_tracer_comes_back_after_the_period_of_the_deformation() -> None:
    rows = [deformation_row("cosine bells", TRACERS["cosine bells"], s, 12) for s in ("upwind", "van-leer-ssp2")]
    check_deformation(rows)
    # Without a divergence, at every time: constants are kept to the roundings of 24 steps.
    constant = deformation_row("constant", lambda x, y: 0 * x + 3.0, "upwind", 8)
    assert constant.error is not None
    assert constant.error < 1e-13


@needs_fipy
def test_fipy_gets_the_same_fields() -> None:
    check_peer_orders(_fipy_problems.conduction(QUICK), 1.7)
    check_peer_orders(_fipy_problems.robin_wall(QUICK), 1.7)
    check_peer(_fipy_problems.advection_diffusion(QUICK))


def test_without_fipy_our_side_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_fipy_problems, _equations):
        monkeypatch.setattr(module, "load_fipy", lambda: None)
    document = bench_equations(size="quick", only=["robin"]).document()["equations"]
    assert document["fipy"] is None
    assert all(row["error"] < 0.1 and row["fipy_error"] is None for row in document["rows"])


def test_means_of_linear_functions_and_of_a_slotted_disk() -> None:
    for mesh in (squares(3), right_triangles(3)):
        graph = dual(mesh)
        x, y = graph.x.T
        assert cell_means(mesh, lambda x, y: 2 * x - y) == pytest.approx(2 * x - y, abs=1e-14)
    # π R² less the slot, which is 0.05 wide and ends at y = 0.85; the samples of 64 × 64 × 2 × 64 points miss little.
    mesh = squares(64)
    slot = 0.05 * (0.1 + math.sqrt(0.15**2 - 0.025**2))
    assert dual(mesh).V @ cell_means(mesh, slotted_cylinder) == pytest.approx(math.pi * 0.15**2 - slot, rel=5e-3)


def test_fronts_variations_and_orders() -> None:
    assert front_position(np.array([1.0, 1.0, 0.25, 0.0]), 0.5) == pytest.approx((1.5 + 2 / 3) / 4)
    with pytest.raises(NumericalError, match=r"0\.5"):
        front_position(np.array([0.0, 1.0]), 0.5)
    # Faces of length ¼ along the row.
    assert total_variation(dual(row_of_squares(4)), np.array([0.0, 1.0, 0.0, 0.5])) == pytest.approx(2.5 / 4)
    coarse = Row("a problem", "a scheme", "squares", 64, error=0.8)
    assert add_orders([coarse, replace(coarse, cells=256, error=0.1)])[1].order == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("options", "named"), [({"size": "huge"}, "huge"), ({"only": ["tides"]}, "tides"), ({"only": []}, "only")]
)
def test_what_is_not_there_is_refused(options: dict[str, object], named: str) -> None:
    with pytest.raises(InputError, match=named):
        bench_equations(**options)  # type: ignore[arg-type]


CHECKS = {
    "varying-k": lambda rows: check_peer_orders(rows, 1.9),
    "robin": lambda rows: check_peer_orders(rows, 1.9),
    "advection-diffusion": check_peer,
    "heat-kernel": check_heat_kernel,
    "two-layers": check_layers,
    "anisotropic": check_anisotropic,
    "fisher": check_fisher,
    "rotation": check_rotation,
    "deformation": check_deformation,
    "burgers": check_burgers,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
def test_the_full_sizes(name: str) -> None:
    if CHECKS[name] is check_peer or name in ("varying-k", "robin"):
        pytest.importorskip("fipy", reason="pip install 'fluxforge[bench]'")
    CHECKS[name](list(bench_equations(size="full", only=[name]).groups[name]))
