"""Two-point fluxes of transport: consistency, antisymmetry, exact Riemann problems, integrals, and limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad, solve_bvp

from fluxforge.errors import SchemeError
from fluxforge.expression import evaluate, symbol
from fluxforge.pde import BUILT_IN, Equation, differentiate, from_document
from fluxforge.scheme import FLUXES, find
from fluxforge.scheme.fluxes import critical_points

P, N = symbol("T_P"), symbol("T_N")


def law(f: str, **parameters: dict[str, object]) -> Equation:
    rank: dict[str, object] = {"rank": "vector"}
    return from_document({"name": "law", "transported": f, "velocity": "a", "parameters": {"a": rank, **parameters}})


LAWS = {
    "advection": law("u"),
    "burgers": law("u**2/2"),
    "traffic": law("u*(1 - u)"),
    "cubic": law("u**3 - u"),
    "buckley-leverett": law("u**2/(u**2 + (1 - u)**2/2)"),
    "underwood": law("u*exp(-u)"),
    "exponential": law("exp(u)"),
    "jam": law("u*(1 - u/m)", m={}),
}
NONLINEAR = [name for name in LAWS if name != "advection"]
INTERVALS = ["godunov", "engquist-osher"]
M = 0.7


def value(formula: sp.Expr, u_P: object, u_N: object, a: object) -> np.ndarray:
    known = {P: u_P, N: u_N, symbol("a_n"): a, symbol("m"): M, symbol("delta"): 0.3, symbol("dt"): 0.1}
    return np.asarray(evaluate(formula, {s: v for s, v in known.items() if s in formula.free_symbols}, np))


def f_of(equation: Equation, u: object) -> np.ndarray:
    return np.asarray(evaluate(equation.transported, {equation.u: u, symbol("m"): M}, np))


def random_states(n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(3)
    u_P, u_N = draw.uniform(-1.5, 2.0, (2, n))
    u_N[:20] = u_P[:20]
    return u_P, u_N, draw.uniform(0.3, 2.0, n) * draw.choice([-1.0, 1.0], n)


SERVED = [(name, flux) for name, equation in LAWS.items() for flux in FLUXES if FLUXES[flux].refuse(equation) is None]


@pytest.mark.parametrize(("name", "flux"), SERVED)
def test_equal_values_have_the_flux_of_the_equation_and_what_leaves_P_enters_N(name: str, flux: str) -> None:
    u, v, a = random_states()
    F = FLUXES[flux].of(LAWS[name], P, N)
    # A few products and sums of numbers of the size of |a| (|f(u)| + |f(v)|).
    size = 64 * np.finfo(float).eps * np.abs(a) * (1 + np.abs(f_of(LAWS[name], u)) + np.abs(f_of(LAWS[name], v)))
    assert (np.abs(value(F, u, u, a) - a * f_of(LAWS[name], u)) <= size).all()
    bound = size + 64 * np.finfo(float).eps * np.abs(value(F, u, v, a))
    assert (np.abs(value(F, u, v, a) + value(F, v, u, -a)) <= bound).all()


ALGEBRA = [pair for pair in SERVED if pair[0] in ("advection", "burgers", "traffic") and pair[1] != "lax-wendroff"]


@pytest.mark.parametrize(("name", "flux"), ALGEBRA)
def test_consistency_is_exact_for_either_sign_of_the_speed(name: str, flux: str) -> None:
    u, a = symbol("T", "positive"), symbol("a_n", "positive")
    F = FLUXES[flux].of(LAWS[name], P, N)
    for sign in (1, -1):
        at = {P: u, N: u, symbol("a_n"): sign * a}
        wanted = sign * a * LAWS[name].transported.xreplace({LAWS[name].u: u})
        # In rationals, on either side of the sonic point of traffic.
        for point in (sp.Rational(1, 3), sp.Rational(5, 2)):
            assert sp.simplify(F.xreplace(at).xreplace({u: point}) - wanted.xreplace({u: point})) == 0


@pytest.mark.parametrize("name", NONLINEAR)
def test_godunov_is_the_extreme_of_the_flux_between_the_states(name: str) -> None:
    """The exact Riemann problem, by trying 20,001 points between the states: transonic ones among them."""
    equation = LAWS[name]
    u, v, a = random_states(120)
    fluxes = value(FLUXES["godunov"].of(equation, P, N), u, v, a)
    s = np.linspace(0.0, 1.0, 20_001)[:, None]
    tried = a * f_of(equation, u + s * (v - u))
    wanted = np.where(u <= v, tried.min(axis=0), tried.max(axis=0))
    # The nearest of the points is |v − u|/40,000 from a sonic point: f differs by |f″|/2 of its square, f″ < 40 here.
    tolerance = np.abs(a) * 20 * (np.abs(v - u) / 40_000) ** 2 + 1e-13 * np.abs(wanted)
    assert (np.abs(fluxes - wanted) <= tolerance + 1e-14).all()
    slopes = f_of(equation, u + 1e-6) - f_of(equation, u - 1e-6), f_of(equation, v + 1e-6) - f_of(equation, v - 1e-6)
    if critical_points(equation.transported, equation.u):
        assert (slopes[0] * slopes[1] < 0).sum() > 10


@pytest.mark.parametrize("name", NONLINEAR)
def test_engquist_and_oshers_flux_is_their_integral(name: str) -> None:
    equation = LAWS[name]
    u, v, a = random_states(60)
    fluxes = value(FLUXES["engquist-osher"].of(equation, P, N), u, v, a)
    slope = differentiate(equation.transported, equation.u)
    points = [float(point.subs(symbol("m"), M)) for point in critical_points(equation.transported, equation.u)]

    def speed(x: float) -> float:
        return abs(float(evaluate(slope, {equation.u: x, symbol("m"): M}, np)))

    for k in range(20, 60):
        kinks = [point for point in points if min(u[k], v[k]) < point < max(u[k], v[k])]
        integral = quad(speed, u[k], v[k], points=kinks or None, epsabs=1e-12)[0]
        wanted = a[k] * (f_of(equation, u[k]) + f_of(equation, v[k])) / 2 - abs(a[k]) * integral / 2
        assert fluxes[k] == pytest.approx(float(wanted), abs=1e-10)


@pytest.mark.parametrize(("name", "flux"), [pair for pair in SERVED if pair[1] in ("upwind", *INTERVALS)])
def test_monotone_fluxes_rise_with_u_P_and_fall_with_u_N(name: str, flux: str) -> None:
    u, v, a = random_states()
    F = FLUXES[flux].of(LAWS[name], P, N)
    assert FLUXES[flux].monotone
    step = 1e-3
    # Differences are round-off of the fluxes at worst.
    noise = 1e-14 * (1 + np.abs(value(F, u, v, a)))
    assert (value(F, u + step, v, a) - value(F, u, v, a) >= -noise).all()
    assert (value(F, u, v + step, a) - value(F, u, v, a) <= noise).all()


def test_rusanov_is_the_equations_own_flux() -> None:
    u, v, a = random_states()
    for equation in (LAWS["burgers"], LAWS["traffic"]):
        own, named = equation.flux(P, N), FLUXES["rusanov"].of(equation, P, N)
        np.testing.assert_array_equal(value(own, u, v, a), value(named, u, v, a))


def exponential(peclet: np.ndarray) -> np.ndarray:
    """B(x) = x/(eˣ − 1) in extended precision, by its series near 0."""
    x = peclet.astype(np.longdouble)
    near = 1 - x / 2 + x**2 / 12 - x**4 / 720
    with np.errstate(all="ignore"):
        return np.where(np.abs(x) < 1e-3, near, x / np.expm1(x))


SG = FLUXES["scharfetter-gummel"].of(BUILT_IN["advection-diffusion"], P, N)


def sg(u_P: object, u_N: object, a: object, D: object, delta: float = 0.25, xp: object = np) -> object:
    known = {P: u_P, N: u_N, symbol("velocity_n"): a, symbol("D_P"): D, symbol("D_N"): D, symbol("delta"): delta}
    return evaluate(SG, known, xp)


def test_scharfetter_and_gummels_flux_is_that_of_the_exact_solution() -> None:
    """The steady a u − D u′ = F between u(0) = u_P and u(δ) = u_N: u = F/a + c e^{ax/D}, solved for F."""
    delta, D = 0.25, 0.4
    peclet = np.concatenate([np.linspace(-30, 30, 121), [-700.0, 700.0, 1e-12, -1e-12, 1e-5, 0.0]])
    a = peclet * D / delta
    wanted = D / delta * (exponential(-peclet) * 0.7 - exponential(peclet) * 1.9)
    # Three products and a sum of numbers of the size of |a| + D/δ.
    tolerance = 32 * np.finfo(float).eps * (np.abs(a) + D / delta) * 2.6
    assert (np.abs(np.asarray(sg(0.7, 1.9, a, D, delta)) - wanted) <= tolerance).all()


def test_scharfetter_and_gummels_flux_is_that_of_a_boundary_value_problem() -> None:
    """Not with a formula: the two-point problem (a u − D u′)′ = 0 solved numerically."""
    a, D, delta = 3.0, 0.5, 0.25
    x = np.linspace(0, delta, 50)
    solved = solve_bvp(
        lambda x, y: np.stack([y[1], a * y[1] / D]),
        lambda left, right: np.array([left[0] - 0.7, right[0] - 1.9]),
        x,
        np.ones((2, 50)),
        tol=1e-9,
    )
    assert sg(0.7, 1.9, a, D, delta) == pytest.approx(a * 0.7 - D * solved.y[1, 0], rel=1e-7)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_scharfetter_and_gummels_flux_and_its_slopes_are_finite(dtype: type) -> None:
    D, delta = 0.4, 0.25
    peclet = jnp.asarray([0.0, 1e-12, -1e-12, 1e-8, -1e-8, 700.0, -700.0, 5e3], dtype)

    def flux(a: jax.Array, u_P: jax.Array) -> jax.Array:
        return jnp.asarray(sg(u_P, jnp.asarray(1.9, dtype), a, jnp.asarray(D, dtype), delta, jnp))

    u_P = jnp.full_like(peclet, 0.7)
    assert jnp.isfinite(flux(peclet * D / delta, u_P)).all()
    slopes = jax.jit(jax.vmap(jax.grad(flux, (0, 1))))(peclet * D / delta, u_P)
    assert all(jnp.isfinite(slope).all() for slope in slopes)


def test_scharfetter_and_gummels_flux_tends_to_upwind_and_to_central() -> None:
    a = np.array([2.0, -2.0])
    upwind = np.where(a > 0, a * 0.7, a * 1.9)
    np.testing.assert_allclose(sg(0.7, 1.9, a, 1e-12), upwind, rtol=1e-12)
    # coth(x) = 1/x + x/3: the correction of central and diffusion is a² δ/(12 D) (N − P).
    central = a * 1.3 - 1e3 / 0.25 * 1.2
    np.testing.assert_allclose(sg(0.7, 1.9, a, 1e3) - central, -(a**2) * 0.25 / 12e3 * 1.2, rtol=1e-3)


def test_lax_and_wendroffs_flux_of_burgers_is_second_order_and_contains_the_step() -> None:
    F = FLUXES["lax-wendroff"].of(LAWS["burgers"], P, N)
    # ½ a (f(P) + f(N)) − Δt a²/(2δ) ½(P + N) (f(N) − f(P)) with Δt = 0.1 and δ = 0.3, by hand.
    wanted = 2.0 * (0.5 + 2.0) / 2 - 0.1 * 4.0 / 0.6 * 1.5 * 1.5
    assert float(value(F, 1.0, 2.0, 2.0)) == pytest.approx(wanted, rel=1e-14)


@pytest.mark.parametrize(
    ("name", "equation", "words"),
    [
        ("upwind", "burgers", "not linear in u"),
        ("upwind", "heat", "it has no transport"),
        ("godunov", "heat", "it has no transport"),
        ("scharfetter-gummel", "advection", "it has no diffusion"),
        ("scharfetter-gummel", "burgers", "it has no diffusion"),
        ("van-leer", "conduction", "it has no transport"),
        ("barth-jespersen", "heat", "it has no transport"),
    ],
)
def test_an_equation_that_is_not_served_is_one_line(name: str, equation: str, words: str) -> None:
    with pytest.raises(SchemeError, match=words) as caught:
        find(name, equation)
    assert "\n" not in str(caught.value)


def test_critical_points_that_are_not_known_are_one_line() -> None:
    for f in ("sin(u)", "u**3/3 - m*u"):
        with pytest.raises(SchemeError, match="derivative of f") as caught:
            find("godunov", law(f, m={}))
        assert "\n" not in str(caught.value)


def test_lax_wendroff_takes_forward_euler_only() -> None:
    with pytest.raises(SchemeError, match="contains the time step"):
        find("lax-wendroff-ssp2", "advection")


def test_diffusion_reaction_and_capacity_stay_as_they_are(tmp_path: object) -> None:
    own = from_document(
        {
            "name": "mixed",
            "capacity": "c",
            "transported": "u**2/2",
            "velocity": "a",
            "diffusion": "k*(1 + u**2)",
            "reaction": "-b*u**3",
            "parameters": {"c": {}, "a": {"rank": "vector"}, "k": {"where": "cell"}, "b": {}},
        }
    )
    rusanov, two_point = find("rusanov-rk4", own), find("rk4", own)
    assert rusanov.stages == two_point.stages
