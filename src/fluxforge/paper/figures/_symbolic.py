"""Figures of the symbolic experiment: the fronts and the table of seeds, and the constant against Δt."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from fluxforge.report import COLOURS, MARKERS, panels


def symbolic_figure(result: Mapping[str, Any]) -> Figure:
    """The paper's figure, error against complexity of f_agg and f_up, and the losses of every network and formula."""
    fronts = sorted(result["fronts"].items(), key=lambda each: each[1]["kind"] != "message")
    figure, axes = panels(len(fronts) + 1)
    for panel, (name, front) in zip(axes, fronts, strict=False):
        x, y = ([row[key] for row in front["rows"]] for key in ("complexity", "error"))
        panel.step(x, y, where="post", color=COLOURS[0], linewidth=1)
        panel.plot(x, y, "o", color=COLOURS[0], markersize=4)
        if front["chosen"] is not None:
            panel.plot(x[front["chosen"]], y[front["chosen"]], "o", color=COLOURS[1], markersize=9, label="chosen")
            panel.legend(fontsize=8)
        panel.set_yscale("log")
        panel.set_xlabel("complexity")
        panel.set_ylabel("relative error")
        panel.set_title(f"{'f_agg' if front['kind'] == 'message' else 'f_up'} ({name})", fontsize=10)
    panel = axes[-1]
    for k, engine in enumerate(result["engines"]):
        own = enumerate(row for row in result["rows"] if row["engine"] == engine)
        # A network whose formula was not found leaves its place empty.
        rows = [(place + 0.25 * k, row) for place, row in own if row["network_loss"] is not None]
        if not rows:
            continue
        for marker, key, label in ((MARKERS[0], "network_loss", "network"), (MARKERS[1], "formula_loss", "formula")):
            x, y = [place for place, _ in rows], [max(row[key] or 0.0, 1e-17) for _, row in rows]
            panel.plot(x, y, marker, color=COLOURS[2 * k + (key != "network_loss")], label=f"{label}, {engine}")
    panel.set_yscale("log")
    panel.set_xlabel("network (seeds, then other α)")
    panel.set_ylabel("loss on fresh problems")
    found = sum(row["recovered"] for row in result["rows"])
    panel.set_title(f"{found} of {len(result['rows'])} recovered", fontsize=10)
    if panel.lines:
        panel.legend(fontsize=8)
    return figure


def pinn_figure(result: Mapping[str, Any]) -> Figure:
    """Flux and source constants of least residual against Δt, per θ, the network's own, and the pair without faces."""
    names = {"c1": "flux constant c/α", "a1": "source constant"}
    figure, axes = panels(len(names))
    for panel, (name, title) in zip(axes, names.items(), strict=True):
        for k, (theta, found) in enumerate(result["against_step"].items()):
            rows = sorted(found["rows"], key=lambda row: row["step"])
            steps = [row["step"] for row in rows]
            panel.plot(
                steps, [row["constants"][name] for row in rows], color=COLOURS[k], label=f"{theta}, least residual"
            )
            own = [(row["step"], row["network"][name]) for row in rows if "network" in row]
            if own:
                panel.plot(
                    *zip(*own, strict=True), MARKERS[k], color=COLOURS[k], fillstyle="none", label=f"{theta}, trained"
                )
            if name == "c1":
                panel.plot(steps, [row["alone"] for row in rows], ":", color=COLOURS[k], linewidth=1)
        panel.set_xscale("log")
        panel.set_xlabel("Δt (mean cell volume 1)")
        panel.set_ylabel("relative to the first-order scheme")
        panel.set_title(title + (" (dotted: 1/(1 + 2θαΔt))" if name == "c1" else ""), fontsize=10)
    axes[0].legend(fontsize=7)
    return figure
