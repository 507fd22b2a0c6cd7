"""Fields with known gradients: random polynomials, random harmonic functions, and manufactured steady problems."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Points = Float[np.ndarray, "points 2"]
_DEGREE = 3


@dataclass(frozen=True)
class Field:
    """A function of the plane, its gradient and its Laplacian at points."""

    value: Callable[[np.ndarray], np.ndarray]
    gradient: Callable[[np.ndarray], np.ndarray]
    laplacian: Callable[[np.ndarray], np.ndarray]


def random_polynomial(rng: np.random.Generator, degree: int = _DEGREE) -> Field:
    """A polynomial about (½, ½) whose coefficients are normal numbers."""
    powers = [(i, j) for i in range(degree + 1) for j in range(degree + 1 - i)]
    c = dict(zip(powers, rng.normal(size=len(powers)), strict=True))

    def term(x: np.ndarray, i: int, j: int) -> np.ndarray:
        X, Y = x[..., 0] - 0.5, x[..., 1] - 0.5
        return np.asarray(X**i * Y**j) if i >= 0 and j >= 0 else np.zeros(x.shape[:-1])

    def total(x: np.ndarray, a: int, b: int) -> np.ndarray:
        """∂ᵃ/∂xᵃ ∂ᵇ/∂yᵇ."""
        found = np.zeros(x.shape[:-1])
        for (i, j), weight in c.items():
            factor = float(np.prod(np.arange(i, i - a, -1)) * np.prod(np.arange(j, j - b, -1)))
            found = found + weight * factor * term(x, i - a, j - b)
        return found

    return Field(
        lambda x: total(x, 0, 0),
        lambda x: np.stack([total(x, 1, 0), total(x, 0, 1)], axis=-1),
        lambda x: total(x, 2, 0) + total(x, 0, 2),
    )


def random_harmonic(rng: np.random.Generator) -> Field:
    """Re(c exp(k z)) with random complex c and k, |k| up to 3."""
    c, k = (complex(*rng.normal(size=2)) for _ in range(2))
    k *= 3.0 * rng.random() / abs(k)

    def exponential(x: np.ndarray) -> np.ndarray:
        return c * np.exp(k * ((x[..., 0] - 0.5) + 1j * (x[..., 1] - 0.5)))

    def gradient(x: np.ndarray) -> np.ndarray:
        slope = k * exponential(x)
        return np.stack([slope.real, -slope.imag], axis=-1)

    return Field(lambda x: exponential(x).real, gradient, lambda x: np.zeros(x.shape[:-1]))


def random_wave(rng: np.random.Generator) -> Field:
    """cos(a·x + b) cos(c·x + e), with random vectors a and c of lengths between 1 and 6."""
    lengths, angles = rng.uniform(1.0, 6.0, 2), rng.uniform(0.0, 2.0 * np.pi, 2)
    a, c = (length * np.array([np.cos(t), np.sin(t)]) for length, t in zip(lengths, angles, strict=True))
    b, e = rng.uniform(0.0, 2.0 * np.pi, 2)

    def parts(x: np.ndarray) -> tuple[np.ndarray, ...]:
        first, second = x @ a + b, x @ c + e
        return np.cos(first), np.sin(first), np.cos(second), np.sin(second)

    def gradient(x: np.ndarray) -> np.ndarray:
        cos1, sin1, cos2, sin2 = parts(x)
        return np.asarray(-(sin1 * cos2)[..., None] * a - (cos1 * sin2)[..., None] * c)

    def laplacian(x: np.ndarray) -> np.ndarray:
        cos1, sin1, cos2, sin2 = parts(x)
        return np.asarray(-(a @ a + c @ c) * cos1 * cos2 + 2.0 * (a @ c) * sin1 * sin2)

    return Field(lambda x: parts(x)[0] * parts(x)[2], gradient, laplacian)


def manufactured_problems(seed: int | tuple[int, ...], count: int) -> tuple[Field, ...]:
    """Solutions of steady problems, T on all walls and −ΔT as the source: waves, and every third one harmonic."""
    rng = np.random.default_rng(seed)
    return tuple(random_harmonic(rng) if k % 3 == 2 else random_wave(rng) for k in range(count))
