"""Draws results/step.png from the step benchmarks beside it."""

import json
from pathlib import Path

from matplotlib.figure import Figure

HERE = Path(__file__).parent


def main() -> None:
    """Gcells per second of each scheme, on the CPU and on the GPU, with SciPy's product for scale."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for panel, name in zip(figure.subplots(1, 2), ("step-cpu", "step-h200"), strict=True):
        document = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
        found = document["result"]
        rows = {scheme: row["cells_per_s"] / 1e9 for scheme, row in found["schemes"].items()}
        rows["SciPy CSR product"] = found["scipy_csr_cells_per_s"] / 1e9
        colours = ["#0072B2"] * (len(rows) - 1) + ["0.6"]
        bars = panel.barh(list(rows), list(rows.values()), color=colours)
        panel.bar_label(bars, fmt="%.3g", padding=3, fontsize=8)
        panel.invert_yaxis()
        panel.set(xscale="log", xlabel="10⁹ cells a second")
        panel.margins(x=0.15)
        fraction = found["roofline_fraction"]
        panel.set_title(
            f"{document['hardware'].split('(')[0].strip()}\neuler at {fraction:.2f} of a vector add", fontsize=9
        )
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "step.png", dpi=110)


if __name__ == "__main__":
    main()
