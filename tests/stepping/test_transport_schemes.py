"""Transport schemes on rows of cells: orders, total variation, limiters, a rarefaction."""

from functools import cache

import jax
import numpy as np
import pytest

from fluxforge.errors import SchemeError
from fluxforge.expression import symbol
from fluxforge.mesh import Dirichlet, Neumann, dual
from fluxforge.scheme import EULER, LIMITERS, find, integrate, limited_space, limiter_of
from fluxforge.scheme.limiters import C, R
from fluxforge.stepping import general_stepper
from transport_rows import ALONG, CELLS, advance, averages, bump, on_row, row, total_variation


def ramp(x: np.ndarray) -> np.ndarray:
    """A smooth rise from 0 to 1 around x = 0.3 without an extremum."""
    at = np.clip((x - 0.1) / 0.4, 0, 1)
    return at**4 * (35 - 84 * at + 70 * at**2 - 20 * at**3)


@cache
def orders(name: str, profile: object = bump, courant: float = 0.5) -> np.ndarray:
    """Orders of the L1 error at t = 0.3 between neighbours of four refinements."""
    errors = []
    for n in (CELLS // 8, CELLS // 4, CELLS // 2, CELLS):
        steps = round(0.3 * n / courant)
        u = advance(name, on_row(CELLS), averages(profile, n, cells=CELLS), 0.3 * n / steps / CELLS, steps)
        errors.append(np.abs(u - averages(profile, n, 0.3, CELLS))[:n].mean())
    return np.log2(np.array(errors[:-1]) / errors[1:])


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("upwind", 1.0), ("central-ssp3", 2.0), ("central-rk4", 2.0), ("lax-wendroff", 2.0), ("upwind-ssp2", 1.0)],
)
def test_orders_of_linear_schemes_are_those_of_the_textbook(name: str, wanted: float) -> None:
    rates = orders(name)
    # Upwind comes near its order slowly, since its error is a diffusion of the size of the bump's own.
    assert abs(rates[-1] - wanted) < (0.2 if wanted == 1.0 else 0.1), rates


@pytest.mark.parametrize("name", ["van-leer", "mc", "koren", "arora-roe", "van-albada", "van-leer-ssp2", "koren-ssp3"])
def test_limited_schemes_are_second_order_where_the_wave_is_smooth_and_monotone(name: str) -> None:
    rates = orders(name, ramp)
    assert rates[-1] > 1.7, rates


def test_minmod_is_more_than_first_order_and_upwind_is_not() -> None:
    assert orders("minmod", ramp)[-1] > 1.5
    assert orders("upwind", ramp)[-1] < 1.2


@pytest.mark.parametrize("courant", [0.3, 0.8, 1.0])
@pytest.mark.parametrize("name", LIMITERS)
def test_total_variation_does_not_grow(name: str, courant: float) -> None:
    u = np.zeros(CELLS)
    # At both walls, where it comes in and where it leaves.
    u[:30], u[-30:] = np.random.default_rng(5).random((2, 30)).round(1)
    u[20:30], u[-20:-15] = 1.0, 0.0
    graph = on_row(CELLS)
    scheme = find(name, "advection")
    step = general_stepper(scheme, graph, dt=courant / CELLS, parameters=ALONG, source=0 * u, dtype="float64")
    before = total_variation(u)
    for _ in range(8):
        u = np.asarray(step(u))
        after = total_variation(u)
        # Sixty differences of numbers up to 1, each rounded a few times.
        assert after <= before + 60 * 8 * np.finfo(float).eps
        before = after


def test_a_limiter_outside_the_bounds_makes_total_variation_grow() -> None:
    """The measurement can fail: Lax and Wendroff's φ = 1 everywhere."""
    n = 60
    u = np.where(np.arange(n) < 30, 1.0, 0.0)
    scheme = integrate(EULER, find("upwind").equation, limited_space(limiter_of("lw", 1 + 0 * R)))
    step = general_stepper(scheme, on_row(n, 1.0), dt=0.5 / n, parameters=ALONG, source=np.zeros(n), dtype="float64")
    assert total_variation(np.asarray(step.rollout(u, 5))) > total_variation(u) + 0.1


def sweby(u: np.ndarray, phi: object, c: float) -> np.ndarray:
    """One step of the flux-limited scheme of Lax and Wendroff on a row, as in the textbook, inflow 0."""
    full = np.concatenate([[0.0, 0.0], u, [u[-1]]])
    flux = np.zeros(len(u) + 1)
    for i in range(len(u) + 1):
        rear, own, front = full[i], full[i + 1], full[i + 2]
        rise = front - own
        r = (own - rear) / rise if rise else 0.0
        flux[i] = own + 0.5 * phi(r, c) * (1 - c) * rise  # type: ignore[operator]
    return u - c * np.diff(flux)


PLAIN = {
    "minmod": lambda r, c: max(0, min(1, r)),
    "van-leer": lambda r, c: (r + abs(r)) / (1 + abs(r)),
    "mc": lambda r, c: max(0, min(2 * r, (1 + r) / 2, 2)),
    "koren": lambda r, c: max(0, min(2 * r, (1 + 2 * r) / 3, 2)),
    "superbee": lambda r, c: max(0, min(2 * r, 1), min(r, 2)),
    "cfl-superbee": lambda r, c: max(0, min(2 * r / c, 1), min(r, 2 / (1 - c))),
    "arora-roe": lambda r, c: max(0, min(2 * r / c, 1 + (1 + c) / 3 * (r - 1), 2 / (1 - c))),
}


@pytest.mark.parametrize("name", PLAIN)
def test_limited_schemes_are_those_of_a_plain_loop(name: str) -> None:
    n, c = CELLS, 0.4
    u = wanted = np.concatenate([np.zeros(3), np.random.default_rng(1).random(n - 6).round(1), np.zeros(3)])
    for _ in range(3):
        wanted = sweby(wanted, PLAIN[name], c)
    after = advance(name, on_row(n), u, c / n, 3)
    # Differences of the size of round-off decide over r between equal cells; their flux is as small.
    assert np.abs(after - wanted).max() < 1e-12
    # And towards the left, seen from the other side of every face: outflow at the left wall has no slope behind it.
    mirrored = advance(name, on_row(n), u[::-1].copy(), c / n, 3, parameters={"velocity": (-1.0, 0.0)})
    assert np.abs(mirrored[::-1] - wanted)[:-3].max() < 1e-12


SLOPES = pytest.mark.parametrize(
    "name",
    [
        pytest.param("van-leer", marks=pytest.mark.slow),
        "cfl-superbee",
        pytest.param("barth-jespersen", marks=pytest.mark.slow),
        "venkatakrishnan",
    ],
)


@pytest.mark.parametrize("name", ["van-leer", "cfl-superbee", "barth-jespersen", "venkatakrishnan"])
def test_a_flat_field_has_finite_slopes(name: str) -> None:
    graph = on_row(6, 0.5)
    step = general_stepper(
        find(name, "advection"), graph, dt=0.05, parameters=ALONG, source=np.zeros(6), dtype="float64"
    )
    u, along = np.full(6, 0.5), np.random.default_rng(1).normal(size=6)
    # A slope that is not finite, whichever it is, is so along any direction.
    after, slope = jax.jit(lambda u, along: jax.jvp(step.advance, (u,), (along,)))(u, along)
    np.testing.assert_array_equal(after, u)
    assert np.isfinite(slope).all()


# The slope of 1/(x² + 1e-30) is beyond single precision.
@SLOPES
def test_a_flat_field_stays_flat_in_single_precision(name: str) -> None:
    scheme = find(name, "advection")
    step = general_stepper(scheme, on_row(6, 0.5), dt=0.05, parameters=ALONG, source=np.zeros(6), dtype="float32")
    np.testing.assert_array_equal(step.advance(np.full(6, 0.5, np.float32)), np.full(6, 0.5))


def test_courant_limiters_take_forward_euler_only_and_strange_symbols_are_refused() -> None:
    with pytest.raises(SchemeError, match="Courant number"):
        find("cfl-superbee-ssp2", "advection")
    with pytest.raises(SchemeError, match="formula of r, q and c"):
        limiter_of("own", R + symbol("w"))


def test_a_limiter_of_ones_own_is_a_scheme() -> None:
    own = limited_space(limiter_of("half", LIMITERS["ultrabee"].phi / 2))
    scheme = integrate(EULER, find("upwind").equation, own, name="half-euler")
    step = general_stepper(scheme, on_row(20), dt=0.02, parameters=ALONG, source=np.zeros(20), dtype="float64")
    u = averages(bump, 20)
    assert total_variation(np.asarray(step.rollout(u, 5))) <= total_variation(u) + 1e-13
    assert C in LIMITERS["ultrabee"].phi.free_symbols


# Steps of Courant number 0.3 after which a fan is compared. The solution depends on x/t alone, so that k steps on cells
# of any width are the fan at one time on cells of width 1/k: four refinements in one run.
REFINEMENTS = (30, 60, 120, 240)


@pytest.mark.parametrize("name", ["godunov", "engquist-osher", "van-leer-ssp2", "van-leer"])
def test_a_transonic_rarefaction_has_no_shock_in_it(name: str) -> None:
    """Burgers from −1 to 1: u = x/t between, and the flux at the sonic point is 0."""
    n, courant = 160, 0.3
    graph = dual(row(n), {"left": Dirichlet(-1.0), "right": Dirichlet(1.0), "boundary": Neumann()})
    x = (graph.x[:, 0] - 0.5) * n
    u, done, errors = np.where(x < 0, -1.0, 1.0), 0, []
    for k in REFINEMENTS:
        along = {"direction": (1.0, 0.0)}
        u = advance(name, graph, u, courant / n, k - done, equation="burgers", parameters=along)
        done = k
        errors.append(np.abs(u - np.clip(x / (courant * k), -1, 1)).sum() / k)
        # Beside the sonic point Godunov's flux takes v to v − c v²/2, whatever the other cells hold. 1/v grows by more
        # than c/2 with each step, so that v < 2/(c k): the jump of 2v is less than 4/(c k), and h/t is 1/(c k).
        # Slopes of second order let it fall faster. A shock that stays would remain a jump of 2.
        assert np.abs(np.diff(u)).max() < 4 / (courant * k), k
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    # A monotone scheme converges to the entropy solution with an order of at least 1/2 in L1 (Kuznetsov), and a
    # shock that stays has order 0.
    assert (rates > 0.5).all(), rates
