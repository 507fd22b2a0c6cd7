"""Polynomials near the exponential: longest intervals against published ones, series and fits against e^z."""

import numpy as np
import pytest

from fluxforge.errors import InputError
from fluxforge.scheme import find_tableau, nested_tableau, rkc2_tableau, rkl2_tableau
from fluxforge.stepping import (
    amplification,
    chebyshev_exponential,
    corrected_euler,
    nearest_polynomial,
    optimal_polynomial,
)

# |p| is bounded at 200 points a degree; between two of them it may exceed 1 by (π/400)²/2.
OVERSHOOT = (np.pi / 400) ** 2 / 2


def test_with_three_stages_the_longest_interval_ends_at_a_root_of_a_cubic() -> None:
    # 1 + z + z²/2 + z³/16 touches 1 at z = −4 and reaches −1 at the end of its interval.
    (end,) = (-root.real for root in np.roots([1 / 16, 1 / 2, 1.0, 2.0]) if abs(root.imag) < 1e-9)
    assert end == pytest.approx(6.2608, abs=1e-4)
    assert optimal_polynomial(3).reach == pytest.approx(end, rel=1e-4)
    # The third coefficient is 1/16.
    p = optimal_polynomial(3)
    z = np.linspace(-6.0, 0.0, 7)
    assert np.abs(p.value(z) - (1 + z + z**2 / 2 + z**3 / 16)).max() < 1e-3


# Van der Houwen's table: β/s² = 0.5, 0.70, 0.75, 0.78, 0.79 for s = 2 to 6, and 0.82 in the limit.
@pytest.mark.parametrize(("stages", "interval"), [(2, 2.0), (4, 12.05), (5, 19.46)])
def test_longest_intervals_are_those_published(stages: int, interval: float) -> None:
    p = optimal_polynomial(stages)
    assert p.reach == pytest.approx(interval, abs=0.01)
    assert p.reach <= 0.82 * stages**2
    z = np.linspace(-p.reach, 0.0, 4001)
    assert np.abs(p.value(z)).max() < 1.0 + OVERSHOOT + 1e-8
    # Of order two: the error of a short step is of third order. The linear program keeps conditions to about 1e-9.
    short = np.array([-0.2, -0.1])
    errors = np.abs(p.value(short) - np.exp(short))
    if stages > 2:
        assert np.log2(errors[0] / errors[1]) == pytest.approx(3.0, abs=0.1)
    assert p.reach >= optimal_polynomial(2).reach * (stages**2 + stages - 2) / 4


@pytest.mark.parametrize("stages", [2, 3, 5, 8])
def test_rkc2_is_of_order_two_and_stable_as_far_as_it_claims(stages: int) -> None:
    tableau = rkc2_tableau(stages)
    ones = [1.0] * (stages - 1)
    z = -np.array([0.2, 0.1, 0.05, 0.025, 0.0125])
    errors = np.abs(amplification(tableau, z, ones) - np.exp(z))
    assert np.log2(errors[:-1] / errors[1:])[-1] == pytest.approx(3.0, abs=0.05)
    inside = np.linspace(-tableau.stable_to, -1e-3, 4001)
    assert np.abs(amplification(tableau, inside, ones)).max() <= 1.0
    # β = ⅔ (s² − 1)(1 − 2ε/15) is approximate; a tenth beyond, methods of four stages and more are unstable.
    if stages > 3:
        assert np.abs(amplification(tableau, np.array([-1.1 * tableau.stable_to]), ones)).max() > 1.5


def test_rkc2_has_two_to_sixty_stages() -> None:
    with pytest.raises(InputError, match="2 to 60 stages, got 1"):
        rkc2_tableau(1)
    with pytest.raises(InputError, match="stages"):
        optimal_polynomial(99)


def test_the_amplification_of_tableaux_is_their_polynomial() -> None:
    z = np.linspace(-3.0, 0.0, 31)
    exact = 1 + z + z**2 / 2 + z**3 / 6
    assert np.abs(amplification(nested_tableau(3), z, [1.0, 1.0]) - exact).max() < 1e-14
    # c_2 and c_3 multiply what stages add: 1 + z (1 + c_3 z/2 (1 + c_2 z/3)).
    other = 1 + z * (1 + 0.7 * z / 2 * (1 + 0.4 * z / 3))
    assert np.abs(amplification(nested_tableau(3), z, [0.4, 0.7]) - other).max() < 1e-14
    rk4 = find_tableau("rk4")
    assert rk4 is not None
    assert np.abs(amplification(rk4, z, [1.0] * 3) - (exact + z**4 / 24)).max() < 1e-14
    edge = np.linspace(-8.99, -0.01, 999)
    assert np.abs(amplification(rkl2_tableau(4), edge, [1.0] * 3)).max() <= 1.0


def test_chebyshev_series_converge_to_the_exponential() -> None:
    z = np.linspace(-10.0, 0.0, 501)
    errors = [np.abs(chebyshev_exponential(degree, 10.0).value(z) - np.exp(z)).max() for degree in (4, 8, 16, 30)]
    assert errors[0] < 0.1
    assert errors[1] < 2e-3
    # The first coefficient left out is 2 e^(−5) I_17(5) = 3e-10.
    assert errors[2] < 1e-9
    assert errors[3] < 1e-14


def test_the_nearest_polynomial_errs_less_than_others_of_its_kind() -> None:
    reach, degree = 5.0, 4
    z = np.linspace(-reach, -1e-3, 2001)

    def worst(values: np.ndarray) -> float:
        return float(np.abs((values - np.exp(z)) / np.expm1(z)).max())

    p = nearest_polynomial(degree, reach)
    assert abs(p.value(np.zeros(1))[0] - 1.0) < 1e-13
    slope = (p.value(np.array([1e-6])) - p.value(np.array([-1e-6])))[0] / 2e-6
    assert slope == pytest.approx(1.0, abs=1e-7)
    best = worst(p.value(z))
    # Five extrema of equal size: four coefficients less the two that are fixed, and two more.
    signed = (p.value(z) - np.exp(z)) / np.expm1(z)
    turning = np.abs(signed) > 0.999 * best
    assert len(np.flatnonzero(np.diff(np.sign(signed[turning])))) >= degree - 1
    taylor = 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24
    assert best < 0.1 * worst(taylor)
    for change in (-0.01, 0.01):
        weights = np.array([0.3, 0.1, 0.02]) + change
        assert best < worst(corrected_euler(weights, reach).value(z))
