"""The results of a discovery that succeeded, and of one that stopped early."""

from collections.abc import Mapping
from typing import Any

from fluxforge.run.result import Discovery
from study_documents import read_partial


def read(document: Mapping[str, Any]) -> Discovery:
    """The record of a document, which may lack fields that are required."""
    return read_partial(document, Discovery)


MESSAGE = "0.6025123456*A/delta*(T_N - T_P)"
FRONTS = {
    "z1": {
        "kind": "message",
        "chosen": 1,
        "rows": [
            {"complexity": 1, "error": 1.0, "formula": "0.0123"},
            {"complexity": 9, "error": 0.0304, "formula": MESSAGE},
            {"complexity": 17, "error": 0.0287, "formula": f"{MESSAGE} + 0.00123*(A - delta)"},
        ],
    },
    "T_new": {
        "kind": "update",
        "chosen": 1,
        "rows": [
            {"complexity": 1, "error": 0.9, "formula": "z1"},
            {"complexity": 7, "error": 0.0, "formula": "1.6595*z1 + 1.0012*S*V"},
        ],
    },
}
LAW = {
    "factor": 1.0,
    "exponents": {"A": 1.0, "delta": -1.0, "V": -1.0, "dt": 1.0},
    "scatter": 1e-16,
    "wrong_signs": 0.0,
}
RESULT: dict[str, Any] = {
    "recipe": "first-order",
    "recovered": True,
    "update": "residual",
    "verdict": "recovered",
    "explained": {"least": 0.994, "by_step": {"0.2": 0.994, "0.01": 0.997}},
    "limit": {"c1": 1.0021, "c2": 0.9984},
    "limit_uncertainty": {"c1": 0.003, "c2": 0.002},
    "findings": ["the order in time of the printed formula is 1.00; with the network's unrounded constants it is 1.00"],
    "reasons": ["the formula does as well as the network", "its certificate finds it consistent"],
    "messages": {"z1": "alpha*A/delta*(T_N - T_P)"},
    "outputs": {"T_new": "T + dt/V*z1 + dt*S"},
    "constants": {"c1": 1.0000001, "c2": 0.99999},
    "constants_uncertainty": {"c1": 1e-9, "c2": 2e-6},
    "rational": {"c1": "1", "c2": "1"},
    "loss": {"network": 3.1e-3, "formula": 2.9e-16, "rational": 2.8e-16},
    "fronts": FRONTS,
    "stencil": {
        "network": LAW | {"factor": 1.0057, "scatter": 0.011},
        "formula": LAW,
        "difference": 0.01,
        "agree": True,
    },
    "evaluation": {
        "meshes": 100,
        "cells": 300,
        "rollout": 50,
        "network": {"one_step_mse": 1e-6, "one_step_worst": 0.0123, "rollout_mse": 4.56e-4},
        "formula": {"one_step_mse": 0.0, "one_step_worst": 8.9e-16, "rollout_mse": 4.1e-31},
    },
    "ablations": {
        "reason": "",
        "seconds": 4.0,
        "found": [
            {
                "method": "sparse regression",
                "messages": {"z": "1.0000001*A/delta*(T_N - T_P)"},
                "update": "T + dt/V*z + dt*S",
                "error": 4.4e-16,
                "seconds": 3.2,
                "note": "",
            }
        ],
    },
    "diffusivity": 1.0,
    "seed": 17,
    "seconds": {"train": 30.1, "distil": 25.0, "refit": 4.0, "certify": 12.3, "report": 2.0},
    "environment": {"python": "3.11.2", "jax": "0.6.2", "device": "cpu"},
}
METRICS = [
    {
        "step": 500 * k,
        "supervised": [0.3 / k, 0.2 / k],
        "sparsity": [2e-3, None],
        "skipped": [0, k],
        "learning_rate": 1e-3,
    }
    for k in range(1, 6)
]
NEAR = {"A": 1.03, "delta": -0.96, "V": -1.004, "dt": 0.96}
FAR = {"A_PN": 1.06, "delta_PN": -0.99, "A_NQ": 1.1, "delta_NQ": -0.87, "V_P": -0.96, "V_N": -1.07, "dt": 1.8}
STEPS = (0.5, 0.25, 0.125, 0.0625)
# Read through its stencil: no search, so no fronts, and constants in the limit of small steps.
READ: dict[str, Any] = {key: value for key, value in RESULT.items() if key != "fronts"} | {
    "recipe": "midpoint",
    "constants": {"a1": 0.5000072, "c1": 0.5000017, "c2": 1.00000006},
    "constants_uncertainty": {"a1": 3.8e-6, "c1": 1.1e-6, "c2": 7.5e-8},
    "rational": {"a1": "1/2", "c1": "1/2", "c2": "1"},
    "against_step": [
        {
            "step": step,
            "constants": {"a1": 0.5 - 0.2 * step, "c1": 0.5 - 0.3 * step, "c2": 1 - 0.1 * step**2},
            "loss": step**2,
            **({"network": {"a1": 0.48 - 0.2 * step, "c1": 0.5, "c2": 1.01, "unexplained": 0.02}} if k < 2 else {}),
        }
        for k, step in enumerate(STEPS)
    ],
    "laws": {"near": LAW | {"factor": 0.801, "exponents": NEAR}, "far": LAW | {"factor": 0.186, "exponents": FAR}},
    "order": 2,
}
EARLY = {key: RESULT[key] for key in ("recipe", "diffusivity", "seed", "seconds", "environment")} | {"recovered": False}
