"""What a discovery leaves: of one that succeeded, and of one that stopped early."""

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
RESULT = {
    "recipe": "first-order",
    "recovered": True,
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
EARLY = {key: RESULT[key] for key in ("recipe", "diffusivity", "seed", "seconds", "environment")} | {"recovered": False}
