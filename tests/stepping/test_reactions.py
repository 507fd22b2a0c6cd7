"""Stable steps and blow-up bounds of equations with a linear reaction: growth, decay, and a pull to a given value."""

import math

import numpy as np
import pytest

from fluxforge.errors import InputError
from fluxforge.mesh import Dirichlet, Neumann, dual, jittered, squares
from fluxforge.pde import Equation, from_document
from fluxforge.scheme import Claims, SchemeBuilder, amplification, find
from fluxforge.stepping import generator, simulate, step_limit
from fluxforge.stepping._field import data_envelope


def equation_with_reaction(reaction: str, diffusion: str = "D", **defaults: float) -> Equation:
    """An equation whose parameters have these defaults."""
    parameters = {name: {"default": value} for name, value in defaults.items()}
    return from_document({"name": "reacting", "diffusion": diffusion, "reaction": reaction, "parameters": parameters})


GROWTH = equation_with_reaction("k*u", D=1.0, k=1.0)
COOLING = equation_with_reaction("k*(w - u)", D=1.0, k=1.0, w=2.0)
ONLY_GROWTH = equation_with_reaction("k*u", "0", k=1.0)


@pytest.mark.parametrize("name", ["euler", "midpoint"])
def test_a_negative_diffusion_that_depends_on_the_unknown_is_refused(name: str) -> None:
    problem = {"equation": equation_with_reaction("0", "D + m*u**2", D=-0.01, m=1.0), "steps": 2}
    wanted = r"^parameter D, m and the initial u: the diffusion should be positive, got -0\.00\d+ in cell 0 at \("
    with pytest.raises(InputError, match=wanted):
        simulate(name, squares(3), initial="0.05*x", **problem)
    simulate(name, squares(3), initial="1 + x", **problem)
    # Where the unknown is 0, a porous medium may conduct nothing.
    empty = equation_with_reaction("0", "m*u**2", m=1.0)
    assert simulate(name, squares(3), equation=empty, initial="x*(x > 0.5)", steps=2).final.min() >= 0.0


@pytest.mark.parametrize("n", [6, 14])
@pytest.mark.parametrize("k", [1.0, 1e5])
def test_modes_that_have_to_grow_do_not_limit_the_step(n: int, k: float) -> None:
    """On meshes whose eigenvalues are all found and on larger ones; also where growth is faster than diffusion."""
    graph = dual(jittered(n, 0.2, 1), Neumann())
    limit = step_limit(find("euler", GROWTH), graph, parameters={"D": 1.0, "k": k})
    eigenvalues = np.linalg.eigvals(generator(find("euler", GROWTH), graph, parameters={"D": 1.0, "k": k}).M.toarray())
    decay = -eigenvalues.real.min()
    assert limit is not None
    # Iterated eigenvalues are good to about five digits.
    assert limit.dt == pytest.approx(2 / decay if decay > 0 else math.inf, rel=1e-4)
    run = simulate("rk4", jittered(n, 0.2, 1), equation=GROWTH, initial=1.0, boundary=Neumann(), steps=3)
    assert run.fields[-1] == pytest.approx(math.exp(run.times[-1]), rel=1e-9)


def test_growth_beyond_the_equations_own_is_stable_at_no_step() -> None:
    backwards = {"z": "-A*D/delta*(T_N - T_P)"}
    scheme = SchemeBuilder(GROWTH).stage(backwards, {"T_new": "T + dt*z/V + dt*k*T"}).build("wrong", claims=Claims())
    limit = step_limit(scheme, dual(squares(4)))
    assert limit is None or limit.dt < 1e-9


def test_a_constant_in_the_reaction_leaves_the_factor_and_the_limit() -> None:
    graph = dual(jittered(5, 0.2, 1))
    decay = equation_with_reaction("-k*u", D=1.0, k=1.0)
    assert amplification(find("rk4", COOLING)) == amplification(find("rk4", decay))
    cooling, decaying = (step_limit(find("euler", equation), graph) for equation in (COOLING, decay))
    assert cooling is not None
    assert cooling == decaying


def test_a_decaying_reaction_has_an_envelope() -> None:
    graph = dual(squares(3), Dirichlet(1.0))
    zero = np.zeros(graph.cells)
    envelope = data_envelope(COOLING, graph, None, initial=zero + 3.0, source=zero + 0.5)
    assert (envelope.start, envelope.rate) == (3.0, 2.5)
    assert data_envelope(GROWTH, graph, None, initial=zero, source=zero).start == math.inf
    run = simulate("euler", squares(5), equation=COOLING, initial="x", dt_fraction=3.0, force=True, throw=False)
    assert run.blew_up_at is not None
    assert np.isfinite(run.fields).all()


@pytest.mark.parametrize("name", ["euler", "rk4", "crank-nicolson"])
def test_growth_without_any_exchange_runs_with_the_step_given(name: str) -> None:
    run = simulate(name, squares(3), equation=ONLY_GROWTH, initial=1.0, dt=0.1, steps=3)
    factor = {"euler": 1.1, "rk4": 1 + 0.1 + 0.005 + 1e-3 / 6 + 1e-4 / 24, "crank-nicolson": 1.05 / 0.95}[name]
    # Three products of numbers near one.
    assert run.fields[-1] == pytest.approx(factor**3, rel=1e-13)
    assert run.dt_limit == math.inf
    # Also where eigenvalues are iterated: without the growth nothing is left of the generator.
    limit = step_limit(find(name, ONLY_GROWTH), dual(squares(18)))
    assert limit is not None
    assert limit.dt == math.inf
