"""The conditions both theorems put on the meshes and data they are applied to."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Array, Float

from fluxforge.certify.bounds._errors import Conditions, worst
from fluxforge.certify.bounds._records import Hypothesis
from fluxforge.certify.bounds._training import Taught
from fluxforge.data import Problem

# Room for round-off in conditions that meshes and data may meet with equality.
_ROOM = 1.0 + 1e-9


def everywhere(
    found: Mapping[str, Conditions], known: Taught, problems: Mapping[str, Problem]
) -> tuple[Hypothesis, ...]:
    """|T|, |S|, |g| ≤ 1; the Fourier condition; what it is needed for; α = 1; Δt at most that of training."""
    alphas = np.concatenate([np.ravel(each.parameters["alpha"]) for each in problems.values()])
    longest = max(float(np.max(np.asarray(each.dt))) for each in problems.values())
    return (
        _at_most("bounded data", {m: c.data for m, c in found.items()}, 1.0, "largest |T|, |S| or |g|"),
        _at_most("Fourier condition", {m: c.fourier for m, c in found.items()}, 1.0, "largest Δt/V Σ α A/δ"),
        _at_most("fluxes", {m: c.flux for m, c in found.items()}, 2.0, "largest Δt/V Σ |α A/δ (T_N − T_P)|"),
        Hypothesis(
            "diffusivity",
            bool((np.abs(alphas - 1.0) <= 1e-9).all()),
            f"α from {alphas.min():.4g} to {alphas.max():.4g}; the theorem is for α = 1",
        ),
        Hypothesis(
            "time step",
            longest <= known.dt * _ROOM,
            f"largest Δt {longest:.4g}, in training {known.dt:.4g}",
        ),
    )


def volumes(found: Mapping[str, Conditions], known: Taught) -> Hypothesis:
    """V_i/Δt ≥ √3/Δt_train: with a smaller cell, N messages of bias b_agg weigh more than N of those in training."""
    pace, where = worst({mesh: each.pace for mesh, each in found.items()})
    smallest = known.dt / pace
    holds = pace <= known.pace * _ROOM
    return Hypothesis(
        "volumes",
        bool(holds),
        f"smallest V Δt_train/Δt {smallest:.4g} in {where}, in training {known.volume:.4g}",
    )


def _at_most(name: str, values: Mapping[str, Float[Array, "problems cells"]], limit: float, words: str) -> Hypothesis:
    largest, where = worst(values)
    return Hypothesis(
        name, largest <= limit * _ROOM, f"{words}: {largest:.4g} in {where}; at most {limit:g} is allowed"
    )
