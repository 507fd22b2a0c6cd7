"""A network on a mesh behaves as a scheme's stepper does, in the units it was trained in."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge.certify import Verdict, verify_step
from fluxforge.errors import InputError
from fluxforge.gnn import FluxNetwork, Network, build_flux_network
from fluxforge.gnn.exact import sparse_network
from fluxforge.graph import Size, pad_to_size
from fluxforge.mesh import Dirichlet, Neumann, Robin, dual, fourier_step, jittered
from fluxforge.pde import BUILT_IN as BUILT_IN_EQUATIONS
from fluxforge.pde import HEAT
from fluxforge.scheme import nested_tableau
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import AbstractStepper, TrainedNetwork, network_stepper, simulate
from small_networks import Numbers, Plain, random_network, spec
from strategies import BOUNDARIES, MESHES, moved, noise, whole_step

MESH = jittered(4)
GRAPH = dual(MESHES["mixed"], BOUNDARIES["both"])
PRIMITIVE = spec(mlp="gated", depth=1, aggregate="max")


@cache
def euler() -> Network:
    """The first-order scheme as a network."""
    return sparse_network(2, 2, 2)


def gap(one: object, other: object) -> float:
    first, second = (np.asarray(each, float) for each in (one, other))
    return float(np.abs(first - second).max() / np.abs(second).max())


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_the_first_order_scheme_as_a_network_steps_like_the_scheme(scale: float) -> None:
    """Scaling to the units of training and back: steps, sources, slopes on the boundary, on meshes of any size."""
    graph = dual(moved(MESHES["mixed"], scale=scale), BOUNDARIES["both"])
    T, S, dt = noise(graph.cells, 1), noise(graph.cells, 2), 0.8 * fourier_step(graph, 2.5)
    step = network_stepper(euler(), graph, dt, diffusivity=2.5, source=S)
    exact = whole_step(BUILT_IN["euler"], graph, dt, 2.5)
    assert isinstance(step, AbstractStepper)
    assert gap(step(T), exact(T, S)) <= 1e-13
    wanted = T
    for _ in range(5):
        wanted = exact(wanted, S)
    assert gap(step.rollout(T, 5), wanted) <= 1e-12


def test_the_ways_to_step_agree() -> None:
    T = noise(GRAPH.cells)
    step = network_stepper(random_network(PRIMITIVE), GRAPH, 1e-3)
    one = np.asarray(step.advance(step.enter(T)))
    assert gap(step(T), one) <= 1e-15
    assert gap(step.leave(step.repeat(step.enter(T), 2)), step(np.asarray(step(T)))) <= 1e-15
    assert np.array_equal(step.rollout(T, 0), T)
    assert step(T).dtype == jnp.float64


@pytest.mark.parametrize("scale", [0.01, 7.0])
def test_a_larger_mesh_with_a_longer_step_and_a_weaker_source_is_the_same_problem(scale: float) -> None:
    """X ↦ s x, Δt ↦ s² Δt, S ↦ S/s², q ↦ q/s leave T as it is: no network can tell."""
    conditions = {"left": Dirichlet(1.5), "right": Neumann(0.4)}
    larger = {"left": Dirichlet(1.5), "right": Neumann(0.4 / scale)}
    T, S = noise(GRAPH.cells, 1), noise(GRAPH.cells, 2)
    net = random_network(PRIMITIVE)
    one = network_stepper(net, dual(MESHES["mixed"], conditions), 1e-3, source=S)
    mesh = moved(MESHES["mixed"], scale=scale)
    other = network_stepper(net, dual(mesh, larger), 1e-3 * scale**2, source=S / scale**2)
    assert gap(other(T), one(T)) <= 1e-11


def test_a_network_sees_the_units_its_docstring_names() -> None:
    T, S, dt, alpha = noise(GRAPH.cells, 1), noise(GRAPH.cells, 2), 2e-3, 1.3
    net, area = random_network(PRIMITIVE), GRAPH.V.mean()
    length = float(np.sqrt(area))
    value = np.where(GRAPH.neumann, GRAPH.value * length, GRAPH.value)
    scaled = eqx.tree_at(
        lambda g: (g.V, g.A, g.delta, g.value), GRAPH, (GRAPH.V / area, GRAPH.A / length, GRAPH.delta / length, value)
    )
    wanted = Plain(PRIMITIVE, net, scaled, Numbers(T, S * area, dt / area, alpha)).step()
    assert gap(network_stepper(net, GRAPH, dt, diffusivity=alpha, source=S)(T), wanted) <= 1e-12


def test_a_source_may_be_a_formula_of_the_places_in_the_mesh() -> None:
    x, y = GRAPH.x.T
    T, net = noise(GRAPH.cells), random_network(PRIMITIVE)
    steps = [network_stepper(net, GRAPH, 1e-3, source=source)(T) for source in ("3*x - y**2", 3 * x - y**2)]
    assert np.array_equal(*steps)


def test_single_precision_agrees_to_single_precision() -> None:
    T, dt = noise(GRAPH.cells), 0.5 * fourier_step(GRAPH)
    step = network_stepper(euler(), GRAPH, dt, precision="float32")
    assert {leaf.dtype for leaf in jax.tree.leaves(step) if eqx.is_inexact_array(leaf)} == {jnp.dtype("float32")}
    after = step(T)
    assert after.dtype == jnp.float32
    assert 1e-9 < gap(after, whole_step(BUILT_IN["euler"], GRAPH, dt)(T)) <= 1e-5


class Compilations:
    """How often the back end compiled anything."""

    count = 0

    def __call__(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        Compilations.count += event == "/jax/core/compile/backend_compile_duration"


jax.monitoring.register_event_duration_secs_listener(Compilations())


def test_steppers_of_one_padded_size_share_a_compilation() -> None:
    """Another mesh, another step, another number of steps, other weights: nothing is compiled again."""
    to = Size(40, 20, {"edge": 4})
    before = []
    for k, name in enumerate(("warped", "mixed", "two")):
        graph = dual(MESHES[name])
        step = network_stepper(random_network(PRIMITIVE, seed=k), graph, 1e-3 * (k + 1), diffusivity=k + 1.0)
        longer = jnp.zeros(to.cells).at[: graph.cells].set(step.S)
        same = eqx.tree_at(lambda s: (s.graph, s.S), step, (pad_to_size(step.graph, to), longer))
        T = np.pad(noise(graph.cells), (0, to.cells - graph.cells))
        before.append(Compilations.count)
        after = np.asarray(same.rollout(T, k + 1))
        before.append(Compilations.count)
        assert gap(after[: graph.cells], step.rollout(noise(graph.cells), k + 1)) <= 1e-14
    assert before[1] > before[0]
    assert before[3] == before[2]
    assert before[5] == before[4]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"alpha": 2.0}, r"^alpha = 2\.0: this network was trained with alpha = 1\.0"),
        ({"alpha": "2"}, r"^alpha = 2: this network was trained with alpha = 1\.0"),
        ({"alpha": np.ones(32)}, r"^alpha = an array of shape \(32,\): this network was trained with alpha = 1\.0"),
        ({"beta": 1.0}, "has no parameter 'beta'"),
    ],
)
def test_a_network_refuses_parameters_it_was_not_trained_with(parameters: Any, words: str) -> None:
    trained = TrainedNetwork("euler", euler(), HEAT, {"alpha": 1.0})
    for same in (1, "1", np.array(1.0)):  # text as on the command line
        step = trained(MESH, "x", dt=1e-3, parameters={"alpha": same})
        np.testing.assert_array_equal(step, trained(MESH, "x", dt=1e-3))
    with pytest.raises(InputError, match=words):
        trained(MESH, "x", dt=1e-3, parameters=parameters)
    with pytest.raises(InputError, match=words):
        simulate(trained, MESH, initial="x", dt=1e-3, steps=1, parameters=parameters)


def test_a_network_refuses_walls_it_was_not_trained_with() -> None:
    """One in the form of a flux takes all walls."""
    trained = TrainedNetwork("euler", euler(), HEAT, {"alpha": 1.0})
    wall = {"left": Robin(2.0, 1.0)}
    wanted = "^the boundary condition of 'left': the network 'euler' supports only a value, neumann:Q or periodic:TAG$"
    with pytest.raises(InputError, match=wanted):
        trained(MESH, "x", dt=1e-3, boundary=wall)
    with pytest.raises(InputError, match=wanted):
        simulate(trained, MESH, initial="x", dt=1e-3, steps=1, boundary=wall)


def test_parameters_that_are_no_numbers_are_named_before_the_walls_that_follow_from_them() -> None:
    """With a velocity, walls that are not named are inflow walls: other walls would not help."""
    trained = TrainedNetwork(
        "n", euler(), BUILT_IN_EQUATIONS["advection-diffusion"], {"velocity": (1.0, 0.0), "D": 1.0}
    )
    with pytest.raises(InputError, match="support parameters that are one number only"):
        trained(MESH, "x", dt=1e-3)


def test_a_parameter_may_be_repeated_as_text_and_a_huge_number_is_another() -> None:
    trained = TrainedNetwork("n", euler(), HEAT, {"alpha": "1 + x"})
    assert trained.check_settings({"alpha": " ".join(["1", "+", "x"])}) == {"alpha": "1 + x"}
    for other in ("1 + y", 10**400):
        with pytest.raises(InputError, match=r"^alpha = 1.{0,59}: this network was trained with alpha = 1 \+ x"):
            trained.check_settings({"alpha": other})


@pytest.mark.parametrize(
    "step",
    [
        lambda graph, dt: network_stepper(euler(), graph, dt).advance,
        TrainedNetwork("euler", euler(), HEAT, {"alpha": 1.0}),
    ],
)
def test_a_network_that_computes_euler_has_eulers_certificate(step: Any) -> None:
    mesh = jittered(6)
    certificate = verify_step(step, mesh=mesh)
    verdicts = {line.property: line.verdict for line in certificate.lines}
    assert certificate.linearity is not None
    assert certificate.linearity.linear
    assert certificate.linearity.hops == 1
    assert certificate.conservation is not None
    assert certificate.conservation.holds
    assert verdicts["constants are kept"] is Verdict.HOLDS
    # At T = 0 every ReLU of this network has its corner: no derivative there is that of the step.
    assert verdicts["at 1 Δt_Fourier: stable, maximum principle"] is Verdict.HOLDS
    assert verdicts["diffusivity on squares is α"] is Verdict.HOLDS
    longest = next(line.evidence for line in certificate.lines if line.property.startswith("at 1 Δt"))
    graph = dual(mesh)
    wanted = np.abs(np.linalg.eigvals(whole_step(BUILT_IN["euler"], graph, fourier_step(graph)).M)).max()
    # Half a unit of the sixth decimal, which is the last one shown.
    assert float(longest.removeprefix("spectral radius ").split(",")[0]) == pytest.approx(wanted, abs=5.1e-7)
    assert certificate.mesh == mesh.origin


def flux_network(equation: str) -> FluxNetwork:
    """The midpoint rule as a network: coefficients of an untrained one are 1."""
    return build_flux_network(nested_tableau(2), BUILT_IN_EQUATIONS[equation], jax.random.key(0), depth=1, width=4)


def test_a_certificate_of_a_network_does_not_depend_on_the_unit_of_time() -> None:
    """With another diffusivity, steps of the same Fourier number do the same."""
    network, mesh = flux_network("heat"), jittered(5)
    one, two = (verify_step(TrainedNetwork("n", network, HEAT, {"alpha": a}), mesh=mesh) for a in (1.0, 2.0))
    assert [line.property for line in two.lines] == [line.property for line in one.lines]
    assert two.lines[-1].property == "diffusivity on squares is α"
    assert {line.verdict for line in two.lines} == {Verdict.HOLDS}


def test_a_network_of_another_equation_is_not_certified_as_one_of_heat() -> None:
    equation = BUILT_IN_EQUATIONS["reaction-diffusion"]
    other = TrainedNetwork("n", flux_network(equation.name), equation, {"D": 1.0, "r": 1.0})
    with pytest.raises(InputError, match="of the equation 'reaction-diffusion': only those of the heat equation"):
        verify_step(other)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_dt_and_diffusivity_are_positive_numbers(bad: float) -> None:
    net = random_network(PRIMITIVE)
    with pytest.raises(InputError, match=r"^dt should be a positive number, got"):
        network_stepper(net, GRAPH, bad)
    with pytest.raises(InputError, match=r"^diffusivity should be a positive number, got"):
        network_stepper(net, GRAPH, 0.1, diffusivity=bad)


def test_a_source_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(InputError, match=r"the source should be 24 finite numbers, got an array of shape \(3,\)"):
        network_stepper(random_network(PRIMITIVE), GRAPH, 0.1, source=np.zeros(3))


def test_double_precision_is_refused_where_jax_would_silently_halve_it() -> None:
    net = random_network(PRIMITIVE)
    with (
        jax.enable_x64(False),
        pytest.raises(InputError, match=r"float64 needs JAX's 64-bit mode: .*or pass precision='float32'$"),
    ):
        network_stepper(net, GRAPH, 1e-4)
