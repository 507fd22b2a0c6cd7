"""The order in time, against the exponential of the scheme's own generator."""

import numpy as np
import pytest
from scipy.sparse import block_array, coo_array, csr_array
from scipy.sparse.linalg import expm_multiply

from fluxforge.mesh import DualGraph, dual, fourier_step, jittered
from fluxforge.scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import generator
from strategies import BOUNDARIES, whole_step

GRAPH = dual(jittered(5, 0.25, seed=6), BOUNDARIES["both"])
COLD = dual(jittered(5, 0.25, seed=6))
STEPS = np.array([16, 32, 64, 128, 256])


def exact(scheme: Scheme, graph: DualGraph, T: np.ndarray, S: np.ndarray, end: float) -> np.ndarray:
    """exp of [[G, f], [0, 0]] applied to (T, 1)."""
    system = generator(scheme, graph)
    forcing = coo_array((system.N @ S + system.b)[:, None])
    whole = csr_array(block_array([[system.M, forcing], [None, coo_array((1, 1))]]))
    return expm_multiply(end * whole, np.append(T, 1.0))[:-1]


def observed_orders(scheme: Scheme, graph: DualGraph, T0: np.ndarray, S: np.ndarray) -> np.ndarray:
    """The order between successive halvings of the step."""
    end = 16 * fourier_step(graph)
    wanted = exact(scheme, graph, T0, S, end)
    errors = []
    for steps in STEPS:
        step = whole_step(scheme, graph, end / steps)
        T = T0
        for _ in range(steps):
            T = step(T, S)
        errors.append(np.abs(T - wanted).max())
    assert min(errors) > 1e-13  # above round-off, or an order means nothing
    return np.log2(np.array(errors[:-1]) / errors[1:])


def smooth(graph: DualGraph) -> np.ndarray:
    return np.sin(np.pi * graph.x[:, 0]) * np.cos(2 * graph.x[:, 1])


def lumpy(graph: DualGraph) -> np.ndarray:
    return 30 * np.sin(7 * graph.x[:, 0] + 2) * np.cos(5 * graph.x[:, 1])


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("euler", 1),
        ("corrected", 1),
        ("two-hop-printed", 1),
        ("midpoint", 2),
        ("two-hop", 2),
        ("rk4", 4),
        ("rkl2-8", 2),
        ("crank-nicolson", 2),
    ],
)
def test_the_order_in_time_is_as_claimed(name: str, order: int) -> None:
    scheme = BUILT_IN[name]
    rates = observed_orders(scheme, GRAPH, smooth(GRAPH), lumpy(GRAPH))
    assert scheme.claims.time_order == order
    assert np.abs(rates[-2:] - order).max() <= 0.1


def test_the_printed_midpoint_rule_is_of_first_order_when_only_the_source_acts() -> None:
    scheme = BUILT_IN["midpoint-printed"]
    rates = observed_orders(scheme, COLD, np.zeros(COLD.cells), lumpy(COLD))
    assert np.abs(rates[-2:] - 1).max() <= 0.1
    assert scheme.claims.time_order == 1


def test_the_printed_midpoint_rule_is_of_second_order_without_a_source() -> None:
    rates = observed_orders(BUILT_IN["midpoint-printed"], COLD, smooth(COLD), np.zeros(COLD.cells))
    assert np.abs(rates[-2:] - 2).max() <= 0.1


def test_the_midpoint_rule_is_of_second_order_with_a_source() -> None:
    rates = observed_orders(BUILT_IN["midpoint"], COLD, np.zeros(COLD.cells), lumpy(COLD))
    assert np.abs(rates[-2:] - 2).max() <= 0.1
