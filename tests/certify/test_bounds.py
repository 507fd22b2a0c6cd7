"""The paper's two theorems on networks that meet their hypotheses, and on networks that do not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bound_cases import DT, EXACT, KEY, MESHES, failing, flatten
from hypothesis import assume, given
from hypothesis import strategies as st

from fluxforge.certify import bounds
from fluxforge.data import problem
from fluxforge.gnn import Network
from fluxforge.gnn.exact import LinearWeights, linear_network, memorising_network, nonzeros
from fluxforge.mesh import Neumann, dual, fourier_step, squares, two_cells
from strategies import few, seeds


def tight_linear_weights(eps: float, dt: float) -> LinearWeights:
    """The linear network whose error comes nearest to the bound: ε (4/Δt + N) where Fo = 1, V = √3 and N ≥ 2.

    It has |p| = ε and b_u = 0, and meets every corner case with an error of ε.
    """
    return LinearWeights(
        temperature=1.0 - 2.0 * eps,
        source=1.0 - 2.0 * eps / dt,
        message=1.0 - 2.0 * eps / dt,
        message_bias=eps * 3.0**0.5 / dt,
    )


def test_the_bounds_are_the_printed_ones():
    assert bounds.linear_bound(1e-3, 0.1, 3) == pytest.approx(47e-3)
    assert bounds.deep_bound(1e-3, 0.1) == pytest.approx(42e-3)
    assert bounds.corrected_linear_bound(1e-3, relative=10.0, offset=2e-3) == pytest.approx(43e-3)
    assert bounds.corrected_linear_bound(1e-3, relative=0.3) == pytest.approx(5e-3)


def test_problems_are_posed_under_the_conditions_of_the_theorems(problems):
    assert set(problems) == set(MESHES)
    for posed in problems.values():
        live = np.asarray(posed.graph.live)
        assert np.asarray(posed.graph.V)[live].min() >= 3.0**0.5
        assert np.abs(np.asarray(posed.T)).max() <= 1.0
        assert posed.dt.shape == (64,)


@pytest.mark.parametrize("kind", ["linear", "deep"])
def test_the_scheme_itself_meets_every_hypothesis_and_the_bound(kind, problems, readings):
    network, check = {
        "linear": (linear_network(LinearWeights()), bounds.check_linear_bound),
        "deep": (EXACT, bounds.check_deep_bound),
    }[kind]
    result = check(network, readings["signed"], problems)
    assert failing(result) == set()
    assert result.bound.applies
    assert result.holds
    assert result.worst_error <= 1e-14
    assert result.counterexample is None


# Which readings of the training set each network fits, and which hypotheses it is caught by.
COUNTEREXAMPLES = {
    "offset": (bounds.offset_counterexample, 6, {"corners", "negated", "positive", "signed"}, {"biases"}),
    "memorised": (bounds.memorised_counterexample, 16, {"corners", "negated", "positive", "signed"}, {"structure"}),
    "saturated": (
        bounds.saturated_counterexample,
        16,
        {"corners", "negated", "positive", "signed", "faces"},
        {"structure"},
    ),
    "one-sided": (bounds.one_sided_counterexample, 16, {"corners", "positive"}, {"their negatives"}),
    "late": (bounds.late_counterexample, 16, {"corners", "negated", "positive"}, {"structure"}),
}


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_a_network_that_fits_and_breaks_the_bound_is_named_by_a_hypothesis_the_print_lacks(name, problems, readings):
    make, count, fitted, lacking = COUNTEREXAMPLES[name]
    example = make(problems, readings)
    assert example.nonzeros == nonzeros(example.network) == count
    assert {reading for reading, error in example.training.items() if error <= 1e-12} == fitted
    assert min((error for reading, error in example.training.items() if reading not in fitted), default=1.0) > 0.03
    assert example.fits in fitted
    assert failing(example.check) == lacking
    assert not example.check.holds
    assert example.check.worst_error > 0.1
    assert example.check.ratio > 1e9


def test_the_factor_by_which_opposite_biases_break_the_bound_is_arbitrary(problems, readings):
    errors = [bounds.offset_counterexample(problems, readings, size=size).check.worst_error for size in (1.0, 100.0)]
    assert errors[1] == pytest.approx(100.0 * errors[0], rel=1e-9)


def test_a_counterexample_is_the_problem_on_which_the_bound_was_exceeded(problems, readings):
    network = memorising_network(2, 2, 8, bound=2.0, ratio=DT / 3.0**0.5)
    result = bounds.check_deep_bound(network, readings["signed"], problems)
    p = result.counterexample
    new = eqx.filter_jit(network)(p.graph, p.T, p.S, dt=p.dt, parameters=p.parameters)
    assert float(jnp.abs(new - p.answer)[result.where.cell]) == pytest.approx(result.worst_error, rel=1e-12)
    assert result.where.mesh in MESHES
    assert str(result.where).endswith(f"on {result.where.mesh}")


def test_the_corrected_linear_bound_is_attained(problems, readings):
    network = linear_network(tight_linear_weights(1e-3, DT))
    assert bounds.largest_error(network, readings["corners"]) == pytest.approx(1e-3, rel=1e-9)
    result = bounds.check_linear_bound(network, readings["corners"], problems, eps=1e-3 * (1 + 1e-9))
    assert failing(result) == set()
    assert result.holds
    assert result.worst_error == pytest.approx(result.corrected, rel=1e-6)
    assert result.ratio == pytest.approx(0.88, abs=0.02)


def test_cells_smaller_than_those_of_training_break_the_printed_bound_and_not_the_corrected_one(readings):
    dt = 0.005
    training = jax.vmap(lambda p: problem(p.graph, p.T, p.S, dt=jnp.array(dt), parameters=p.parameters))(
        readings["corners"]
    )
    problems = bounds.roomy_problems(MESHES, KEY, count=64, dt=dt, volume=0.0)
    network = linear_network(tight_linear_weights(1e-4, dt))
    result = bounds.check_linear_bound(network, training, problems, eps=1e-4 * (1 + 1e-9))
    assert failing(result) == {"volumes"}
    assert result.ratio > 1.2
    assert result.worst_error <= result.corrected * (1 + 1e-9)


small = st.floats(-1.0, 1.0)
perturbations = st.tuples(*[small] * 6)


def perturb_weights(by: tuple[float, ...], size: float) -> LinearWeights:
    scheme = np.array(LinearWeights())
    return LinearWeights(*(float(entry) for entry in scheme + size * np.array(by)))


@given(by=perturbations, size=st.sampled_from([1e-6, 1e-2, 0.5]), reading=st.sampled_from(["corners", "signed"]))
@few(12)
def test_no_linear_network_breaks_the_bound_once_the_bias_of_messages_is_small_and_cells_are_large(
    by, size, reading, problems, readings
):
    weights = perturb_weights(by, size)
    network = linear_network(weights)
    p = DT / 3.0**0.5 * weights.flux * weights.message_bias
    eps = max(bounds.largest_error(network, readings[reading]), abs(p), 1e-12)
    result = bounds.check_linear_bound(network, readings[reading], problems, eps=eps)
    assert failing(result) == set()
    assert result.holds


@given(by=perturbations, size=st.sampled_from([1e-4, 1.0, 10.0]), seed=seeds)
@few(10)
def test_the_corrected_bound_needs_nothing_of_biases_volumes_or_the_fourier_condition(by, size, seed, readings):
    rng = np.random.default_rng(seed)
    network = linear_network(perturb_weights(by, size))
    graph = dual(flatten(squares(3), float(rng.uniform(0.2, 1.0))))
    posed = bounds.problems_on(
        graph, jax.random.key(seed), count=8, dt=rng.uniform(0.01, DT), diffusivity=rng.uniform(0.1, 2.0)
    )
    result = bounds.check_linear_bound(network, readings["corners"], {"one": posed})
    assert result.worst_error <= result.corrected * (1 + 1e-9)


@given(p=small, rest=small)
@few(12)
def test_a_pair_at_zero_with_faces_at_zero_bounds_both_biases(p, rest, readings):
    weights = LinearWeights(message_bias=p * 3.0**0.5 / DT, bias=rest - p)
    # The corner cases, their negatives, and the pair: no random samples.
    cases = jax.tree.map(lambda leaf: leaf[-10:], readings["faces"])
    eps = bounds.largest_error(linear_network(weights), cases)
    assert abs(p) <= eps + 1e-12
    assert abs(weights.bias) <= 2 * eps + 1e-12


def perturb(network: Network, seed: int, size: float) -> Network:
    """The network with every non-zero parameter multiplied by 1 ± size."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda leaf: leaf * (1 + size * rng.uniform(-1, 1, leaf.shape)) if eqx.is_inexact_array(leaf) else leaf, network
    )


@given(seed=seeds, size=st.sampled_from([1e-6, 1e-3, 1e-2]), reading=st.sampled_from(["negated", "signed"]))
@few(12)
def test_no_network_of_the_lemmas_structure_breaks_the_deep_bound(seed, size, reading, problems, readings):
    network = perturb(EXACT, seed, size)
    result = bounds.check_deep_bound(network, readings[reading], problems)
    assume(result.bound.eps < 0.09)
    assert failing(result) == set()
    assert result.holds


def test_without_the_negatives_a_network_of_the_lemmas_structure_breaks_the_deep_bound(problems, readings):
    result = bounds.check_deep_bound(perturb(EXACT, 1, 1e-2), readings["corners"], problems)
    assert failing(result) == {"their negatives"}
    broken = eqx.tree_at(
        lambda n: n.layers[1].update.f.layers[1].weight, EXACT, replace_fn=lambda w: w.at[0, 1].set(-3.0)
    )
    result = bounds.check_deep_bound(broken, readings["corners"], problems)
    assert failing(result) == {"their negatives"}
    assert not result.holds


@pytest.mark.parametrize("mesh", MESHES)
def test_the_fourier_condition_is_sufficient_and_not_necessary(mesh):
    condition = bounds.fourier_is_sufficient(dual(MESHES[mesh]), diffusivity=0.3)
    assert 1.0 < condition.ratio < 2.0
    assert condition.fourier == fourier_step(dual(MESHES[mesh]), 0.3)


def test_the_fourier_condition_is_sharp_on_two_insulated_cells():
    condition = bounds.fourier_is_sufficient(dual(two_cells(), Neumann()))
    assert condition.ratio == pytest.approx(1.0, rel=1e-12)
    assert bounds.fourier_is_sufficient(dual(squares(1), Neumann())).ratio == 1.0
