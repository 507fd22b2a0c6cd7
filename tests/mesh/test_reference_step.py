"""One reference step for diffusion, transport and reactions, against plain loops and known cases."""

import math

import numpy as np
import pytest

from fluxforge.errors import EquationError, InputError
from fluxforge.mesh import Dirichlet, DualGraph, Neumann, dual, fourier_step, jittered, reference_step, resolve, squares
from fluxforge.pde import HEAT, from_document

ADVECTION = from_document(
    {"name": "advection", "transported": "u", "velocity": "a", "parameters": {"a": {"rank": "vector", "where": "face"}}}
)
FISHER = from_document(
    {"name": "fisher", "diffusion": "D", "reaction": "r*u*(1 - u)", "parameters": {"D": {"default": 1.0}, "r": {}}}
)
LAYERS = from_document(
    {
        "name": "layers",
        "diffusion": "k",
        "capacity": "c",
        "parameters": {"k": {"where": "cell"}, "c": {"where": "cell"}},
    }
)
ANISOTROPIC = from_document({"name": "anisotropic", "diffusion": "K", "parameters": {"K": {"rank": "tensor"}}})
PRODUCT = from_document(
    {"name": "product", "diffusion": "k*m", "parameters": {"k": {"where": "cell"}, "m": {"where": "face"}}}
)
BURGERS = from_document(
    {"name": "burgers", "transported": "u**2/2", "velocity": "a", "parameters": {"a": {"rank": "vector"}}}
)
MIXED = {"left": Dirichlet(1.0), "right": Neumann(), "top": Neumann(), "bottom": Dirichlet()}


def courant_step(graph: DualGraph, velocity: np.ndarray) -> float:
    """min V / Σ over the faces through which a cell loses what upwind takes from it."""
    along = np.einsum("fi,fi->f", velocity, graph.n) * graph.A
    total = np.zeros(graph.cells)
    for face, flow in enumerate(along):
        inside = face < graph.interior
        neumann = not inside and graph.neumann[face - graph.interior]
        # Behind a Neumann face is what the owner has, so inflow there is a gain of its own.
        total[graph.owner[face]] += abs(flow) if neumann else max(flow, 0.0)
        if inside:
            total[graph.neighbour[face]] += max(-flow, 0.0)
    return float((graph.V / total).min())


@pytest.mark.parametrize("boundary", [None, MIXED, Neumann()], ids=["held", "mixed", "free"])
@pytest.mark.parametrize("formulas", [("1", "0.3"), ("-y", "x"), ("x", "2*y - 1")], ids=["one", "turning", "divergent"])
def test_the_step_of_upwind_transport_is_courants(boundary: object, formulas: tuple[str, str]) -> None:
    graph = dual(jittered(6, 0.2, 3), boundary)  # type: ignore[arg-type]
    x, y = graph.centre.T
    known = {"1": np.ones_like(x), "0.3": 0.3 * np.ones_like(x), "-y": -y, "x": x, "2*y - 1": 2 * y - 1}
    velocity = np.stack([known[text] for text in formulas], axis=1)
    wanted = courant_step(graph, velocity)
    for given in (formulas, f"({', '.join(formulas)})", velocity):
        assert reference_step(ADVECTION, graph, {"a": given}) == pytest.approx(wanted, rel=1e-13)


def test_without_a_velocity_the_courant_step_is_infinite() -> None:
    assert reference_step(ADVECTION, dual(squares(3)), {"a": (0.0, 0.0)}) == math.inf


def test_a_decay_shortens_the_step_and_a_growth_does_not() -> None:
    graph = dual(squares(4), Neumann())
    fourier = fourier_step(graph)
    calm, full = np.zeros(graph.cells), np.ones(graph.cells)
    # r′ = r(1 − 2u): growth at u = 0, decay with rate r at u = 1.
    assert reference_step(FISHER, graph, {"r": 100.0}, calm) == pytest.approx(fourier, rel=1e-13)
    assert reference_step(FISHER, graph, {"r": 100.0}, full) == pytest.approx(1 / (1 / fourier + 100), rel=1e-13)
    with pytest.raises(InputError, match="depends on the state"):
        reference_step(FISHER, graph, {"r": 1.0})


def test_the_step_of_burgers_goes_with_the_fastest_wave() -> None:
    graph = dual(squares(5), Neumann())
    u = np.linspace(-2.0, 3.0, graph.cells)
    same = np.full(graph.cells, 3.0)
    entering = dual(squares(5), {"left": Dirichlet(3.0), "right": Neumann(), "top": Neumann(), "bottom": Neumann()})
    assert reference_step(BURGERS, entering, {"a": (1, 0)}, same) == pytest.approx(0.2 / 3, rel=1e-13)
    assert reference_step(BURGERS, graph, {"a": (2, 0)}, u) == pytest.approx(
        reference_step(BURGERS, graph, {"a": (1, 0)}, 2 * u), rel=1e-12
    )


def test_capacity_and_conductivity_may_vary_from_cell_to_cell() -> None:
    graph = dual(jittered(5, 0.2, 1), MIXED)
    k = np.where(graph.x[:, 0] > 0.5, 100.0, 1.0)
    c = 1 + graph.x[:, 1]
    rate = np.zeros(graph.cells)
    for face in range(len(graph.A)):
        P, N = graph.owner[face], graph.neighbour[face]
        if graph.cells > N:
            w = 2 * k[P] * k[N] / (k[P] + k[N]) * graph.A[face] / graph.delta[face]
            rate[N] += w
        else:
            w = 0.0 if graph.neumann[N - graph.cells] else k[P] * graph.A[face] / graph.delta[face]
        rate[P] += w
    wanted = float((c * graph.V / rate).min())
    assert reference_step(LAYERS, graph, {"k": k, "c": "1 + y"}) == pytest.approx(wanted, rel=1e-13)


def test_an_isotropic_tensor_is_a_diffusivity() -> None:
    graph = dual(jittered(5, 0.2, 1))
    for K in (((2.5, 0), (0, 2.5)), "((2.5, 0), (0, 2.5))", "(2.5,0),(0,2.5)"):
        assert reference_step(ANISOTROPIC, graph, {"K": K}) == pytest.approx(
            reference_step(HEAT, graph, {"alpha": 2.5}), rel=1e-13
        )


def test_a_parameter_per_cell_may_be_multiplied_by_one_per_face() -> None:
    graph = dual(jittered(4, 0.2, 1))
    step = reference_step(PRODUCT, graph, {"k": "1 + x", "m": 2.0})
    assert step == pytest.approx(reference_step(PRODUCT, graph, {"k": "2 + 2*x", "m": 1.0}), rel=1e-13)
    field = 1 + graph.x[:, 0]
    layers = from_document({"name": "layers", "diffusion": "k", "parameters": {"k": {"where": "cell"}}})
    assert step == pytest.approx(reference_step(layers, graph, {"k": 2 * field}), rel=1e-13)


@pytest.mark.parametrize(
    ("equation", "values", "words"),
    [
        (ADVECTION, {}, "parameter 'a' has no value"),
        (ADVECTION, {"b": 1.0}, "no parameter 'b'"),
        (ADVECTION, {"a": (1.0,)}, "should have 2 components"),
        (ADVECTION, {"a": "(1, 0, 0)"}, "should have 2 components"),
        (ADVECTION, {"a": ("x", "log(x - 5)")}, "component 2"),
        (LAYERS, {"k": np.ones(3), "c": 1}, "finite numbers"),
        (LAYERS, {"k": "1/(x - x)", "c": 1}, "'k'"),
        (HEAT, {"alpha": "x"}, "'alpha' should be a finite number"),
        (HEAT, {"alpha": math.inf}, "'alpha' should be a finite number"),
        (HEAT, {"alpha": 0.0}, "parameter alpha: the diffusion should be positive, got 0"),
        (LAYERS, {"k": "x - 1/2", "c": 1}, "parameter k: the diffusion should be positive"),
        (LAYERS, {"k": 1, "c": "0"}, "parameter c: the capacity should be positive"),
        (ANISOTROPIC, {"K": ((1, 2), (2, 1))}, "positive definite"),
        (ANISOTROPIC, {"K": ((1, 0.5), (0, 1))}, "positive definite"),
        (ANISOTROPIC, {"K": (1, 2)}, "2 rows of 2 numbers"),
        (ANISOTROPIC, {"K": "(1, 2)"}, "2 rows of 2 numbers"),
        (ANISOTROPIC, {"K": "((1, 0), (0, x))"}, "2 rows of 2 numbers"),
        (ANISOTROPIC, {"K": "((1, 2), (2, 1))"}, "positive definite"),
        (PRODUCT, {"k": 1, "m": np.ones(4)}, "'m', given per face, should be 12 finite numbers"),
        (PRODUCT, {"k": 1, "m": "x - 1/2"}, "parameter k, m: the diffusion should be positive"),
    ],
)
def test_values_that_do_not_fit_are_refused(equation, values, words) -> None:
    with pytest.raises(InputError) as refused:
        resolve(equation, dual(squares(2)), values)
    assert words in str(refused.value)
    assert isinstance(refused.value, EquationError) or "parameter" in str(refused.value)
