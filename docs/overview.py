"""Draws docs/overview.png: a heat problem on an irregular mesh, and what certificates say of two schemes."""

from pathlib import Path

from matplotlib.figure import Figure

import fluxforge as ff
from fluxforge.certify._families import Levels
from fluxforge.certify.order import measure_space_order
from fluxforge.mesh import draw_field, save_figure
from fluxforge.scheme.reference import BUILT_IN


def main() -> None:
    """Run both and draw them side by side."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    mesh = ff.mesh.square(cells=600, kind="irregular", seed=3, engine="builtin")
    run = ff.simulate("midpoint", mesh, initial="sin(pi*x)*sin(2*pi*y)**2", source="8*x*y", steps=120)
    patches = draw_field(left, mesh, run.fields[-1], colours="inferno", edges=True)
    figure.colorbar(patches, ax=left, label="T", shrink=0.85)
    left.set_title("a heat problem on an irregular mesh, by midpoint", fontsize=10)
    for name, colour in (("euler", "#D55E00"), ("corrected", "#0072B2")):
        for family, style in (("squares", "s:"), ("right", "o-"), ("jittered", "^--")):
            study = measure_space_order(BUILT_IN[name], Levels(family, (6, 12, 24, 48)))
            order = "no order" if study.l2.order is None else f"order {study.l2.order:.2f}"
            label = f"{name}, {family}: {order}"
            right.loglog(study.cells, study.l2.errors, style, color=colour, label=label, markersize=4)
    right.set(xlabel="cells", ylabel="relative L2 error of the steady state")
    right.set_title("the plain flux converges on squares, not on skewed triangles", fontsize=10)
    right.grid(alpha=0.25)
    right.legend(fontsize=8)
    save_figure(figure, Path(__file__).with_name("overview.png"), dpi=110)


if __name__ == "__main__":
    main()
