"""The report of a discovered limiter: φ with the network, its bounds and Sweby's region, and errors on waves."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fluxforge.certify._certificate import Certificate
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import parse
from fluxforge.report._next import describe_scheme
from fluxforge.report._page import COLOURS, MARKERS, draw_legend_below, embed_figure, page, panels, write_report
from fluxforge.run.limiter import LimiterResult
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme.limiters import C, Q, R

FIGURES = {"phi": "the limiter", "waves": "errors on waves and fresh profiles"}
# Which of the ten Courant numbers from 0.05 to 0.95, the rows of the network's table, are drawn.
_ROWS = (2, 5, 8)
_COURANT = np.linspace(0.05, 0.95, 10)


def phi_figure(result: LimiterResult) -> Figure:
    """φ(r) at three Courant numbers: formulas, network, upper bound, and Sweby's region shaded."""
    figure, axes = panels(len(_ROWS))
    formulas = [row for row in result.limiters if row.formula is not None]
    r = np.linspace(1e-3, 5.0, 1500)
    for panel, row in zip(axes, _ROWS, strict=True):
        c = float(_COURANT[row])
        bound = np.minimum(2 * r / c, 2 / (1 - c))
        panel.fill_between(r, np.minimum(r, 1), np.minimum(np.minimum(2 * r, 2), np.maximum(r, 1)), color="0.9")
        panel.plot(r, bound, color="0.5", ls=":", label="upper bound")
        if result.shares:
            share = np.array(result.shares[row], float)
            s = (np.arange(len(share)) + 0.5) / len(share)
            points = s / (1 - s)
            panel.plot(
                points, share * np.minimum(2 * points / c, 2 / (1 - c)), ".", color=COLOURS[0], ms=3, label="network"
            )
        for each, colour in zip(formulas, COLOURS[1:], strict=False):
            phi = evaluate(parse(each.formula or "0", ("r", "q", "c")), {R: r, Q: np.ones_like(r), C: c}, np)
            panel.plot(r, phi, color=colour, lw=1.2, label=each.name)
        panel.set(xlabel="r", ylabel="φ", title=f"c = {c:.2f}", xlim=(0, 5), ylim=(0, 1.1 * 2 / (1 - c)))
    draw_legend_below(figure, axes[0])
    return figure


def wave_figure(result: LimiterResult) -> Figure:
    """Errors on Jiang's and Shu's wave against the Courant number, on fresh profiles against the number of steps."""
    figure, (left, right) = panels(2)
    for row, colour, marker in zip(result.limiters, COLOURS, MARKERS, strict=False):
        style: dict[str, Any] = {"color": colour, "marker": marker, "ms": 4, "label": row.name}
        left.plot([float(c) for c in row.jiang_shu], [value or np.nan for value in row.jiang_shu.values()], **style)
        right.semilogx([int(n) for n in row.fresh], [value or np.nan for value in row.fresh.values()], **style)
    left.set(
        xlabel="Courant number c", ylabel="mean |error|", title="Jiang–Shu wave, 200 cells, t = 10", ylim=(0, None)
    )
    right.set(xlabel="steps", ylabel="error / CFL-superbee's", title="fresh profiles, 64 cells", ylim=(0, None))
    horizons = [int(n) for n in result.limiters[0].fresh]
    right.set_xticks(horizons, [f"{n:,}" for n in horizons])
    right.minorticks_off()
    draw_legend_below(figure, left)
    return figure


def write_limiter(
    result: LimiterResult,
    folder: Path,
    *,
    scheme: Scheme | None,
    certificate: Certificate | None,
    command: str = "",
) -> list[Path]:
    """Write `report.html` and the figures; return their paths."""
    figures = {"phi": phi_figure(result), "waves": wave_figure(result)}
    downwind = Q in parse(result.formula, ("r", "q", "c")).free_symbols
    captions = {
        "phi": f"φ against r at three Courant numbers{', with q = 1' if downwind else ''}: the network (dots), the "
        "closed forms fitted to it and refitted on the loss, the upper bound min(2r/c, 2/(1 − c)), and the region of "
        "Sweby (shaded).",
        "waves": "Left: mean |error| on Jiang's and Shu's wave, which is never trained on. Right: errors on profiles "
        "drawn for this test, over those of CFL-superbee.",
    }
    shown = {name: embed_figure(figure, name, captions[name]) for name, figure in figures.items()}
    text = page(
        "limiter.html",
        result=result,
        figures=shown,
        downwind=downwind,
        **describe_scheme(
            result, scheme, certificate, FIGURES.items(), command=command, metrics=True, mesh="family squares -n 50"
        ),
    )
    return write_report(folder, text, figures)
