"""What a scheme does, to look at: a hot spot that spreads beside a hot wall, on a mesh that is fine in two places."""

from matplotlib.figure import Figure

from fluxforge.errors import InputError, InstabilityError
from fluxforge.mesh import Dirichlet, draw_field, generate
from fluxforge.scheme import Scheme
from fluxforge.simulate import simulate

CELLS, STEPS = 600, 100
# Of the Fourier step.
FRACTION = 0.5
HOT_SPOT = "exp(-30*((x - 0.6)**2 + (y - 0.5)**2))"


def field_figure(scheme: Scheme, diffusivity: float) -> Figure | None:
    """The temperature after a short run, cells outlined; nothing where the scheme cannot be run so."""
    try:
        return _drawn(scheme, diffusivity)
    except (InputError, InstabilityError):  # A picture is no reason to lose a discovery.
        return None


def _drawn(scheme: Scheme, diffusivity: float) -> Figure:
    mesh = generate(kind="irregular", cells=CELLS, seed=0, engine="builtin")
    run = simulate(
        scheme,
        mesh,
        diffusivity=diffusivity,
        initial=HOT_SPOT,
        boundary={"left": Dirichlet(1.0)},
        dt_fraction=FRACTION,
        steps=STEPS,
        save_every=STEPS,
    )
    figure = Figure(figsize=(5, 4.2), layout="constrained")
    axes = figure.add_subplot()
    patches = draw_field(axes, mesh, run.fields[-1], colours="inferno", edges=True)
    patches.set_edgecolor((0.5, 0.5, 0.5, 0.6))
    figure.colorbar(patches, ax=axes, label="T", shrink=0.85)
    axes.set_title(
        f"{run.graph.cells} cells, {run.steps} steps, Δt = {run.dt / run.dt_fourier:g} Fourier steps", fontsize=10
    )
    return figure
