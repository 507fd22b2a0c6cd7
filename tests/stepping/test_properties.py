"""What holds for every scheme on every mesh: symmetries, scalings, linearity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxforge.mesh import Conditions, Dirichlet, Mesh, Neumann, dual, fourier_step
from fluxforge.scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from strategies import angles, few, mixed, moved, noise, renumbered, scales, seeds, shifts, whole_step

MESH = mixed(3, 0.3, seed=3)
every_scheme = pytest.mark.parametrize("scheme", BUILT_IN.values(), ids=str)
numbers = st.floats(-10.0, 10.0)


def walls(g: float, q: float, h: float = 0.0) -> Conditions:
    """Constant data, which a moved mesh keeps."""
    return {"left": Dirichlet(g), "right": Neumann(q), "bottom": Dirichlet(h), "top": Neumann(-2 * q)}


def take_step(
    scheme: Scheme, mesh: Mesh, conditions: Conditions, T: np.ndarray, S: np.ndarray, *, dt: float, alpha: float = 1.0
) -> np.ndarray:
    return whole_step(scheme, dual(mesh, conditions), dt, alpha)(T, S)


DT = 0.7 * fourier_step(dual(MESH))


@every_scheme
@few(3)
@given(seed=seeds, g=numbers, q=numbers)
def test_the_numbering_does_not_matter(scheme: Scheme, seed: int, g: float, q: float) -> None:
    other, order = renumbered(MESH, seed)
    T, S = noise(len(MESH.cells), seed), noise(len(MESH.cells), seed // 2)
    one = take_step(scheme, MESH, walls(g, q), T, S, dt=DT)
    two = take_step(scheme, other, walls(g, q), T[order], S[order], dt=DT)
    assert np.abs(two - one[order]).max() <= 1e-12 * (1 + np.abs(one).max())


@every_scheme
@few(3)
@given(angle=angles, shift=shifts, q=numbers)
def test_a_rigid_motion_does_not_matter(scheme: Scheme, angle: float, shift: tuple[float, float], q: float) -> None:
    T, S = noise(len(MESH.cells), 1), noise(len(MESH.cells), 2)
    one = take_step(scheme, MESH, walls(2.0, q), T, S, dt=DT)
    two = take_step(scheme, moved(MESH, angle=angle, shift=shift), walls(2.0, q), T, S, dt=DT)
    assert np.abs(two - one).max() <= 1e-11 * (1 + np.abs(one).max())


@every_scheme
@few(3)
@given(s=scales)
def test_lengths_by_s_and_times_by_s_squared(scheme: Scheme, s: float) -> None:
    """T(sx, s²t), with S/s² and q/s."""
    T, S = noise(len(MESH.cells), 3), noise(len(MESH.cells), 4)
    one = take_step(scheme, MESH, walls(2.0, 1.5), T, S, dt=DT)
    two = take_step(scheme, moved(MESH, scale=s), walls(2.0, 1.5 / s), T, S / s**2, dt=DT * s**2)
    assert np.abs(two - one).max() <= 1e-11 * (1 + np.abs(one).max())


@every_scheme
@few(2)
@given(k=st.floats(0.01, 100.0))
def test_a_faster_diffusion_is_a_longer_time(scheme: Scheme, k: float) -> None:
    T, S = noise(len(MESH.cells), 3), noise(len(MESH.cells), 4)
    one = take_step(scheme, MESH, walls(2.0, 1.5), T, S, dt=DT)
    two = take_step(scheme, MESH, walls(2.0, 1.5), T, S * k, dt=DT / k, alpha=k)
    assert np.abs(two - one).max() <= 1e-12 * (1 + np.abs(one).max())


@every_scheme
@few(2)
@given(c=numbers)
def test_the_zero_of_temperature_does_not_matter(scheme: Scheme, c: float) -> None:
    T, S = noise(len(MESH.cells), 5), noise(len(MESH.cells), 6)
    one = take_step(scheme, MESH, walls(2.0, 1.5, -1.0), T, S, dt=DT)
    two = take_step(scheme, MESH, walls(2.0 + c, 1.5, -1.0 + c), T + c, S, dt=DT)
    assert np.abs(two - c - one).max() <= 1e-11 * (1 + np.abs(one).max() + abs(c))


@every_scheme
@few(2)
@given(a=numbers, b=numbers, seed=seeds)
def test_linear_in_temperature_source_and_boundary_data(scheme: Scheme, a: float, b: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((2, 3))
    T, S = rng.standard_normal((2, 2, len(MESH.cells)))
    parts = [take_step(scheme, MESH, walls(*data[k].tolist()), T[k], S[k], dt=DT) for k in range(2)]
    mixed_walls = walls(*(a * data[0] + b * data[1]).tolist())
    whole = take_step(scheme, MESH, mixed_walls, a * T[0] + b * T[1], a * S[0] + b * S[1], dt=DT)
    assert np.abs(whole - a * parts[0] - b * parts[1]).max() <= 1e-11 * (1 + np.abs(whole).max())


MONOTONE = [scheme for scheme in BUILT_IN.values() if scheme.name in ("euler", "crank-nicolson")]


@pytest.mark.parametrize("scheme", MONOTONE, ids=str)
@few(10)
@given(seed=seeds, share=st.floats(0.05, 1.0))
def test_up_to_the_fourier_step_nothing_becomes_hotter_than_the_hottest(
    scheme: Scheme, seed: int, share: float
) -> None:
    graph = dual(MESH, walls(0.0, 0.0, 1.0))
    T = np.random.default_rng(seed).random(graph.cells)
    step = whole_step(scheme, graph, share * fourier_step(graph))
    assert step.M.min() >= -1e-15
    after = step(T)
    assert after.min() >= -1e-14
    assert after.max() <= 1 + 1e-14
