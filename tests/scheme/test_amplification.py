"""R(z) in exact arithmetic, against the textbook, and against the matrices of an irregular mesh."""

import numpy as np
import pytest
import sympy as sp

from fluxforge.mesh import DualGraph, Neumann, dual, fourier_step
from fluxforge.scheme import Claims, Ghost, Scheme, SchemeBuilder, amplification, find
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import generator
from strategies import BOUNDARIES, MESHES, whole_step

z = sp.Symbol("z")
EULER, MIDPOINT = 1 + z, 1 + z + z**2 / 2


def legendre(s: int) -> sp.Expr:
    """Meyer, Balsara & Aslam: R = 1 − b + b P_s(1 + w z)."""
    b = sp.Rational(s * s + s - 2, 2 * s * (s + 1))
    return 1 - b + b * sp.legendre(s, 1 + sp.Rational(4, s * s + s - 2) * z)


KNOWN = {
    "euler": EULER,
    "corrected": EULER,
    "two-hop-printed": EULER,
    "midpoint": MIDPOINT,
    "midpoint-printed": MIDPOINT,
    "two-hop": MIDPOINT,
    "rk4": 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24,
    "rkl2-8": legendre(8),
    "crank-nicolson": (1 + z / 2) / (1 - z / 2),
    "crank-nicolson-printed": (1 - z / 2) / (1 + z / 2),
}


def test_every_built_in_scheme_is_known_here() -> None:
    assert KNOWN.keys() == BUILT_IN.keys()


@pytest.mark.parametrize("name", KNOWN)
def test_the_factor_is_exactly_that_of_the_textbook(name: str) -> None:
    factor = amplification(BUILT_IN[name])
    assert factor is not None
    assert sp.cancel(factor - KNOWN[name]) == 0
    assert not factor.has(sp.Float)


@pytest.mark.parametrize("s", [2, 3, 4, 7])
def test_runge_kutta_legendre_is_its_polynomial_for_every_number_of_stages(s: int) -> None:
    assert sp.expand(amplification(find(f"rkl2-{s}")) - legendre(s)) == 0


@pytest.mark.parametrize("s", [2, 5, 8])
def test_runge_kutta_legendre_is_consistent_to_exactly_second_order(s: int) -> None:
    coefficients = sp.Poly(amplification(find(f"rkl2-{s}")), z).all_coeffs()[::-1]
    assert coefficients[:3] == [1, 1, sp.Rational(1, 2)]
    assert len(coefficients) == s + 1
    if s > 2:
        assert coefficients[3] != sp.Rational(1, 6)


def test_rkl2_8_is_stable_on_all_of_its_interval_and_no_further() -> None:
    factor = sp.Poly(amplification(BUILT_IN["rkl2-8"]), z)
    assert all(abs(factor.eval(sp.Rational(-k, 20))) <= 1 for k in range(701))
    assert factor.eval(-35) == 1
    assert abs(factor.eval(sp.Rational(-35001, 1000))) > 1


GRAPHS = {
    "dirichlet": dual(MESHES["jittered"]),
    "insulated": dual(MESHES["mixed"], Neumann()),
    "both": dual(MESHES["warped"], BOUNDARIES["both"]),
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
@pytest.mark.parametrize("scheme", BUILT_IN.values(), ids=str)
def test_a_step_is_the_factor_of_the_generator(scheme: Scheme, graph: DualGraph) -> None:
    dt = 0.7 * fourier_step(graph, 2.5)
    factor = amplification(scheme)
    G = dt * generator(scheme, graph, parameters={"alpha": 2.5}).M.toarray()
    if scheme.name == "crank-nicolson-printed":
        G = -G  # its own generator is −L, and R is written in z = −Δt·|rate|
    numerator, denominator = (
        sum(float(c) * np.linalg.matrix_power(G, k) for k, c in enumerate(sp.Poly(part, z).all_coeffs()[::-1]))
        for part in sp.fraction(sp.together(factor))
    )
    wanted = np.linalg.solve(denominator, numerator) if np.ndim(denominator) == 2 else numerator / denominator
    M = whole_step(scheme, graph, dt, 2.5).M
    assert np.abs(M - wanted).max() <= 1e-11 * np.abs(wanted).max()


def build_scheme(message: str, output: str, theta: sp.Expr = sp.S.Zero) -> Scheme:
    builder = SchemeBuilder().stage({"z": message, "w": "alpha*A/delta"}, {"T_new": output})
    return builder.build("mine", summary="", claims=Claims(), theta=theta)


FLUX = "alpha*A/delta*(T_N - T_P)"


@pytest.mark.parametrize(
    ("scheme", "factor"),
    [
        (build_scheme(FLUX, "T + dt/V*z", sp.Integer(1)), 1 / (1 - z)),
        (build_scheme(FLUX, "T + dt/V*z", sp.Rational(1, 3)), (1 + 2 * z / 3) / (1 - z / 3)),
        (build_scheme(FLUX, "T - dt/V*z"), 1 - z),
        (build_scheme(FLUX, "T + 3*dt/V*z"), 1 + z),
        (build_scheme(FLUX, "T + dt/V*z/(1 + dt*w/V)"), 1 / (1 - z)),
    ],
    ids=["backward euler", "theta third", "antidiffusion", "three times alpha", "rational in dt"],
)
def test_the_factor_of_schemes_by_hand(scheme: Scheme, factor: sp.Expr) -> None:
    assert sp.cancel(amplification(scheme) - factor) == 0


@pytest.mark.parametrize(
    "scheme",
    [
        build_scheme("T_N*T_P", "T + dt*z"),
        build_scheme("T_N**2 - T_P**2", "T + dt*z"),
        build_scheme(FLUX, "T + 1"),
        build_scheme(FLUX, "3"),
        build_scheme(FLUX, "T"),
        build_scheme(FLUX, "T + sqrt(dt)/V*z"),
    ],
    ids=["product", "squares", "affine", "constant", "identity", "square root of dt"],
)
def test_a_scheme_without_a_factor_has_none(scheme: Scheme) -> None:
    assert amplification(scheme) is None


@pytest.mark.parametrize("ghost", ["owner", "zero", "dirichlet"])
def test_the_one_cell_sees_its_own_outputs_through_their_ghost_rules(ghost: str) -> None:
    """The copy of T a cold wall shows is T itself for `owner`, which adds nothing, and 0 otherwise."""
    second = {"z": FLUX, "y": "alpha*A/delta*(copy_N - copy_P)"}
    scheme = (
        SchemeBuilder()
        .stage({}, {"copy": (Ghost(ghost), "T")})
        .stage(second, {"T_new": "T + dt/V*z + dt**2/2*y"})
        .build("mine", summary="", claims=Claims())
    )
    share = 0 if ghost == "owner" else z**2 / 2
    assert sp.expand(amplification(scheme) - EULER + share) == 0


def test_the_source_and_the_boundary_data_play_no_part() -> None:
    assert amplification(build_scheme(FLUX, "T + dt/V*z + dt*S")) == amplification(
        build_scheme(FLUX, "T + dt/V*z + 7*dt*S")
    )
