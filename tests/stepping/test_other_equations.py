"""Problems of other equations than heat, against exact solutions and plain loops."""

import numpy as np
import pytest

from fluxforge.errors import InputError
from fluxforge.mesh import Dirichlet, Neumann, dual, jittered, resolve, squares
from fluxforge.pde import HEAT, from_document
from fluxforge.scheme import find
from fluxforge.stepping import generator, simulate, step_limit, stepper
from fluxforge.stepping._limit import disc_radius

ADVECTION = from_document(
    {"name": "advection", "transported": "u", "velocity": "a", "parameters": {"a": {"rank": "vector", "where": "face"}}}
)
BURGERS = from_document(
    {"name": "burgers", "transported": "u**2/2", "velocity": "a", "parameters": {"a": {"rank": "vector"}}}
)
FISHER = from_document(
    {"name": "fisher", "diffusion": "D", "reaction": "r*u*(1 - u)", "parameters": {"D": {"default": 0.01}, "r": {}}}
)
PER_CELL = {"where": "cell"}
LAYERS = from_document(
    {"name": "layers", "diffusion": "k", "capacity": "c", "parameters": {"k": PER_CELL, "c": PER_CELL}}
)
FREE = {"left": Dirichlet(), "right": Neumann(), "top": Neumann(), "bottom": Neumann()}


@pytest.mark.parametrize("name", ["euler", "midpoint", "rk4"])
def test_upwind_transport_is_that_of_plain_loops(name: str) -> None:
    graph = dual(jittered(5, 0.2, 2), FREE)
    G = generator(find(name, ADVECTION), graph, parameters={"a": "(1 + y, -x)"})
    flow = np.einsum("fi,fi->f", np.stack([1 + graph.centre[:, 1], -graph.centre[:, 0]], axis=1), graph.n) * graph.A
    u = np.random.default_rng(0).random(graph.cells)
    rate = np.zeros(graph.cells)
    for face, F in enumerate(flow):
        P, N = graph.owner[face], graph.neighbour[face]
        behind = graph.cells <= N
        shown = graph.value[N - graph.cells] if behind else 0.0
        across = (u[P] if graph.neumann[N - graph.cells] else shown) if behind else u[N]
        carried = F * (u[P] if F > 0 else across)
        rate[P] -= carried / graph.V[P]
        if graph.cells > N:
            rate[N] += carried / graph.V[N]
    # Sums of at most six fluxes of the same size.
    assert np.abs(G.M @ u + G.b - rate).max() < 1e-13 * np.abs(rate).max()


def test_a_population_that_is_the_same_everywhere_grows_as_the_logistic_function() -> None:
    run = simulate("rk4", squares(3), equation=FISHER, parameters={"r": 2.0}, initial=0.1, boundary=Neumann(), dt=0.01)
    wanted = 1 / (1 + 9 * np.exp(-2.0 * run.times[-1]))
    # Fourth order: the error of a step is below (r dt)^5 = 3e-9, and fifty of them are made.
    assert np.abs(run.fields[-1] - wanted).max() < 50 * 3e-9
    assert run.dt_limit is None


def test_a_shock_of_burgers_has_the_speed_of_rankine_and_hugoniot() -> None:
    walls = FREE | {"left": Dirichlet(1.0)}
    parts = {}
    for n in (40, 80):
        run = simulate(
            "euler",
            squares(n),
            equation=BURGERS,
            parameters={"a": (1, 0)},
            initial=0.0,
            boundary=walls,
            dt=0.4 / n,
            steps=n,
        )
        parts[n] = float(run.graph.V @ run.fields[-1])
    # The shock moves at (1 + 0)/2 from the wall: the mass at time 0.4 is 0.2, to round-off but for the first cell.
    assert parts[40] == pytest.approx(0.2, abs=0.5 / 40)
    assert parts[80] == pytest.approx(0.2, abs=0.5 / 80)


def test_two_layers_have_the_flux_of_resistances_in_series() -> None:
    walls = {"left": Dirichlet(0.0), "right": Dirichlet(1.0), "top": Neumann(), "bottom": Neumann()}
    values = {"k": "1 + 99*(1 + sign(x - 1/2))/2", "c": 1.0}
    graph = dual(squares(8), walls)
    system = generator(find("euler", LAYERS), graph, parameters=values)
    T, x = np.linalg.solve(-system.M.toarray(), system.b), graph.x[:, 0]
    flux = 1 / (0.5 / 1 + 0.5 / 100)
    wanted = np.where(x < 0.5, flux * x, 1 - flux / 100 * (1 - x))
    # Exact for the harmonic mean where the jump is on a face; the system's condition number is about 1e4.
    assert np.abs(T - wanted).max() < 1e-11


def test_capacity_slows_the_change_and_leaves_the_steady_state() -> None:
    graph = dual(jittered(4, 0.2, 1), FREE)
    one, three = (generator(find("euler", LAYERS), graph, parameters={"k": "1 + x", "c": c}) for c in (1.0, 3.0))
    assert np.abs((one.M - 3 * three.M).toarray()).max() < 1e-13 * np.abs(one.M.toarray()).max()
    assert np.abs((one.N - 3 * three.N).toarray()).max() < 1e-15


@pytest.mark.parametrize(("name", "radius"), [("euler", 1.0), ("midpoint", 1.0), ("rk4", 1.3926)])
def test_the_limit_of_transport_is_the_largest_disc_in_the_region_of_stability(name: str, radius: float) -> None:
    from fluxforge.scheme import amplification

    graph = dual(squares(6), FREE)
    scheme = find(name, ADVECTION)
    limit = step_limit(scheme, graph, parameters={"a": (1, 0)})
    assert limit is not None
    # The radii are known to four digits.
    assert disc_radius(amplification(find(name))) == pytest.approx(radius, abs=1e-4)
    assert limit.dt == pytest.approx(radius / 6, rel=1e-4)


def test_a_transport_step_beyond_its_limit_is_refused() -> None:
    problem = {"equation": ADVECTION, "parameters": {"a": (1, 0)}, "initial": "x", "boundary": FREE, "steps": 5}
    assert simulate("euler", squares(5), dt=0.2, **problem).dt == 0.2
    with pytest.raises(InputError, match="above the stability limit"):
        simulate("euler", squares(5), dt=0.21, **problem)


def test_diffusivity_is_refused_for_equations_without_it() -> None:
    with pytest.raises(InputError, match="has no diffusivity"):
        simulate("euler", squares(2), equation=ADVECTION, parameters={"a": (1, 0)}, diffusivity=1.0)
    with pytest.raises(InputError, match="are the same parameter"):
        stepper("euler", dual(squares(2)), 0.01, diffusivity=1.0, parameters={"alpha": 2.0})
    with pytest.raises(InputError, match="no parameter 'k'"):
        stepper("euler", dual(squares(2)), 0.01, parameters={"k": 2.0})
    assert HEAT.settings(diffusivity=None) == {}


def test_a_scheme_of_formulas_serves_its_own_equation_only() -> None:
    with pytest.raises(InputError, match="belongs to the equation 'heat'"):
        find("two-hop", FISHER)
    assert find("euler", "heat") is find("euler")


def test_parameters_that_vary_reach_the_general_stepper_too() -> None:
    """A nonlinear scheme with conductivities per cell: against the formula, cell by cell."""
    equation = from_document(
        {"name": "both", "diffusion": "k", "reaction": "-u**2", "parameters": {"k": {"where": "cell"}}}
    )
    graph = dual(squares(3), Neumann())
    u, dt = np.random.default_rng(0).random(graph.cells), 1e-3
    k = resolve(equation, graph, {"k": "1 + x"}).cells["k"]
    after = np.asarray(stepper("euler", graph, dt, equation=equation, parameters={"k": "1 + x"})(u))
    rate = -(u**2)
    for face in range(graph.interior):
        P, N = graph.owner[face], graph.neighbour[face]
        F = 2 * k[P] * k[N] / (k[P] + k[N]) * (u[P] - u[N]) * graph.A[face] / graph.delta[face]
        rate[P] -= F / graph.V[P]
        rate[N] += F / graph.V[N]
    assert np.abs(after - u - dt * rate).max() < 1e-15
