"""The experiments by name, and how any of them is run, drawn and written down."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from matplotlib.figure import Figure

import fluxforge.experiments.convergence as convergence
import fluxforge.experiments.generalisation as generalisation
import fluxforge.experiments.higher_order as higher_order
import fluxforge.experiments.memory as memory
import fluxforge.experiments.symbolic as symbolic
import fluxforge.experiments.theorems as theorems
from fluxforge._files import write_document
from fluxforge.discover import Progress, silent
from fluxforge.errors import InputError
from fluxforge.mesh import save_figure
from fluxforge.report import (
    constants_figure,
    errors_figure,
    extrapolation_figure,
    four_layers_figure,
    generalisation_figure,
    memory_figure,
    pinn_figure,
    printed_residual_map,
    residual_map,
    residuals_figure,
    symbolic_figure,
    theorems_figure,
)

Warn = Callable[[str], None]


@dataclass(frozen=True)
class Experiment:
    """One part of the paper: how it is run, with what changed, and the figures drawn from its result."""

    summary: str
    run: Callable[[str, Mapping[str, Any], Path | None, Progress, Warn], dict[str, Any]]
    figures: Mapping[str, Callable[[Mapping[str, Any]], Figure]]


EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        "generalisation": Experiment(
            "networks trained on two cells, with and without sparsity, on meshes they have not seen",
            lambda preset, changes, folder, tell, warn: generalisation.run(
                generalisation.Config(preset=preset, changes=changes), folder, tell, warn
            ),
            {"generalisation": generalisation_figure, "extrapolation": extrapolation_figure},
        ),
        "symbolic": Experiment(
            "formulas from networks: how often the first-order scheme is found, and what a residual finds",
            lambda preset, changes, folder, tell, warn: symbolic.run(
                symbolic.Config(preset=preset, changes=changes), folder, tell, warn
            ),
            {"symbolic": symbolic_figure, "constant-against-step": pinn_figure},
        ),
        "higher-order": Experiment(
            "what two layers, two hops and four layers learn from the residual of the heat equation alone",
            lambda preset, changes, folder, tell, warn: higher_order.run(
                higher_order.Config(preset=preset, changes=changes), folder, tell, warn
            ),
            {"constants": constants_figure, "four-layers": four_layers_figure, "residuals": residuals_figure},
        ),
        "convergence": Experiment(
            "residuals, errors in time and space, and seconds of every scheme, over mesh size and time step",
            lambda preset, changes, folder, tell, warn: convergence.run(
                convergence.Config(preset=preset, changes=changes), folder, tell, warn
            ),
            {
                "convergence": residual_map,
                "convergence-as-printed": printed_residual_map,
                "errors": errors_figure,
            },
        ),
        "memory": Experiment(
            "what every scheme holds in memory, measured and counted, over mesh size and time step",
            lambda preset, changes, folder, tell, warn: memory.run(
                memory.Config(preset=preset, changes=changes), folder, tell, warn
            ),
            {"memory": memory_figure},
        ),
        "theorems": Experiment(
            "the lemma's weights, the counterexamples, and both error bounds on trained networks",
            lambda preset, changes, folder, tell, warn: theorems.run(
                theorems.Config(preset=preset, changes=changes), folder, tell, warn
            ),
            {"theorems": theorems_figure},
        ),
    }
)


def reproduce(
    name: str,
    *,
    preset: str = "quick",
    changes: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    tell: Progress = silent,
    warn: Warn = lambda _: None,
) -> dict[str, Any]:
    """Run one experiment; with a folder, leave its document, its figures and its runs there, and go on from them."""
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}")
    chosen = EXPERIMENTS[name]
    own = None if folder is None else folder / name
    result = chosen.run(preset, changes or {}, own, tell, warn)
    if own is not None:
        write_document(own / f"{name}.json", name, 1, result)
        for title, draw in chosen.figures.items():
            figure = draw(result)
            for suffix in ("png", "svg"):
                save_figure(figure, own / f"{title}.{suffix}")
    return result
