"""A picture of what a scheme does: a spot that spreads beside a wall of value 1, on an irregular mesh."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from fluxforge.errors import InputError, InstabilityError
from fluxforge.mesh import Dirichlet, draw_field, generate
from fluxforge.scheme import Scheme
from fluxforge.stepping import simulate

CELLS, STEPS = 600, 100
# Of the reference step.
FRACTION = 0.5
SPOT = "exp(-30*((x - 0.6)**2 + (y - 0.5)**2))"


def field_figure(scheme: Scheme, parameters: Mapping[str, Any]) -> Figure | None:
    """The unknown after a short run, cells outlined; nothing where the scheme cannot be run so."""
    try:
        return _drawn(scheme, parameters)
    except (InputError, InstabilityError):  # A picture is no reason to lose a discovery.
        return None


def _drawn(scheme: Scheme, parameters: Mapping[str, Any]) -> Figure:
    mesh = generate(kind="irregular", cells=CELLS, seed=0, engine="builtin")
    run = simulate(
        scheme,
        mesh,
        parameters=parameters,
        initial=SPOT,
        boundary={"left": Dirichlet(1.0)},
        dt_fraction=FRACTION,
        steps=STEPS,
        save_every=STEPS,
    )
    figure = Figure(figsize=(5, 4.2), layout="constrained")
    axes = figure.add_subplot()
    patches = draw_field(axes, mesh, run.fields[-1], colours="inferno", edges=True)
    patches.set_edgecolor((0.5, 0.5, 0.5, 0.6))
    figure.colorbar(patches, ax=axes, label=scheme.equation.unknown, shrink=0.85)
    unit = "Fourier" if scheme.equation.only_diffuses else "reference"
    axes.set_title(
        f"{run.graph.cells} cells, {run.steps} steps, Δt = {run.dt / run.dt_fourier:g} {unit} steps", fontsize=10
    )
    return figure
