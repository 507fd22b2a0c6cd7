"""c(Δt) → c₀: the constants of a formula at shorter and shorter steps, and what they tend to."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from fluxforge.report._page import COLOURS, MARKERS, Shown, decimals, embed_figure, number, panels
from fluxforge.run._record import Numbers
from fluxforge.run.result import Discovery, StepRow

# The network's constants are shown up to so many times the range of the formula's beyond it.
BEYOND = 1.5
TINY = 1e-3
HOLLOW = {"markerfacecolor": "none", "markersize": 8, "zorder": 4}


def limit_rows(result: Discovery) -> list[StepRow]:
    """The steps at which constants are known, longest first."""
    rows = [row for row in result.against_step or () if row.step > 0 and row.constants]
    return sorted(rows, key=lambda row: -row.step)


def limit_figure(result: Discovery) -> Figure:
    """Constants against the step, a panel for those that tend to the same; the network's own are hollow."""
    groups = _groups(result)
    figure, axes = panels(len(groups), columns=2)
    for panel, (aim, names) in zip(axes, groups.items(), strict=True):
        _draw(panel, result, names)
        if aim:
            panel.set_title(f"towards {aim}", fontsize=10)
    return figure


def limit_pictures(result: Discovery) -> list[Shown]:
    """A picture per panel, for a page."""
    found = []
    for k, names in enumerate(_groups(result).values() if limit_rows(result) else ()):
        figure, (panel,) = panels(1)
        outside = _draw(panel, result, names)
        caption = f"{', '.join(names)} against the step: lines are the formula's best, stars what they tend to"
        caption += ", hollow marks the network's own" if _network_names(result, names) else ""
        caption += f", {outside} of which lie outside" if outside else ""
        ends = (
            f"{name} goes from {row[0]} at the longest step to {row[2]}" for name, *row in limit_table(result, names)
        )
        found.append(embed_figure(figure, f"limit{k}", f"{caption}.", alt="; ".join(ends)))
    return found


def limit_table(result: Discovery, names: Sequence[str] | None = None) -> list[tuple[str, str, str, str, str]]:
    """Constant, at the longest step, at the shortest, limit ± uncertainty, and what it was taken as."""
    rows = limit_rows(result)
    if not rows:
        return []
    values, spread, taken = result.constants or {}, result.constants_uncertainty or {}, result.rational or {}
    if result.constants_fitted is not None:
        values, spread = result.constants_fitted.values, result.constants_fitted.uncertainty
    return [
        (
            name,
            _short(rows[0].constants.get(name)),
            _short(rows[-1].constants.get(name)),
            "—" if (value := values.get(name)) is None else with_uncertainty(value, spread.get(name)),
            str(taken.get(name) or _short(values.get(name))),
        )
        for name in (rows[0].constants if names is None else names)
    ]


def limit_steps(result: Discovery) -> str:
    """From the longest step to the shortest, in words."""
    steps = [row.step for row in limit_rows(result)]
    return f"{step_label(result)}, from {number(steps[0])} down to {number(steps[-1])}" if steps else ""


def step_label(result: Discovery) -> str:
    """What steps are measured in: a stencil is read on meshes, and there in Fourier steps."""
    return "Δt in units of the Fourier step" if result.laws else "Δt"


def with_uncertainty(value: float, spread: float | None) -> str:
    """The value to the digits its uncertainty leaves: 0.99999000 ± 2.0 × 10⁻⁸."""
    if spread is None or not math.isfinite(spread) or not math.isfinite(value):
        return number(value, 10)
    if spread <= 0:
        return f"{number(value, 16)} ± 0"
    decimals = min(max(1 - math.floor(math.log10(spread)), 0), 15)
    return f"{value:.{decimals}f} ± {number(spread, 2)}".replace("-", "−")


def _short(value: float | None) -> str:
    """Five places, so that 1.00000 is not the number 1; fewer digits of what is tiny."""
    return decimals(value, 5) if value is None or abs(value) >= TINY else number(value)


def _groups(result: Discovery) -> dict[str, list[str]]:
    """Constants by what they were taken as."""
    names, taken = list(limit_rows(result)[0].constants), result.rational or {}
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(str(taken.get(name) or ""), []).append(name)
    return found


def _draw(panel: Axes, result: Discovery, names: Sequence[str]) -> int:
    """Draw these constants, and return how many of the network's are too far off to be shown."""
    rows = limit_rows(result)
    steps, left = [row.step for row in rows], rows[-1].step / 2
    for k, name in enumerate(names):
        panel.plot(steps, _column([row.constants for row in rows], name), "-", **_look(k), label=name)
        _end(panel, result, name, left=left, look=_look(k))
    low, high = panel.get_ylim()
    reach = BEYOND * (high - low)
    outside = 0
    for name, label in _network_names(result, names).items():
        values = _column([row.network for row in rows], name)
        far = (values < low - reach) | (values > high + reach)
        outside += int(far.sum())
        panel.plot(steps, np.where(far, np.nan, values), " ", **_look(names.index(name)) | HOLLOW, label=label)
    panel.set(xscale="log", xlabel=step_label(result), ylabel="constant")
    # Readings of the network lie between the halvings; their labels would overlap.
    ticks = [row.step for row in rows if not row.network][::2] or steps[::2]
    panel.set_xticks([*ticks, left], [*(f"{step:.3g}" for step in ticks), "→ 0"])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.axvline(left * math.sqrt(2), color="#999999", linewidth=0.8, linestyle=":")
    panel.ticklabel_format(axis="y", useOffset=False)
    panel.legend(fontsize=8.5)
    return outside


def _end(panel: Axes, result: Discovery, name: str, *, left: float, look: dict[str, Any]) -> None:
    """What a constant tends to, with its uncertainty, at the edge."""
    value = (result.constants or {}).get(name)
    if value is None or not math.isfinite(value):
        return
    spread = (result.constants_uncertainty or {}).get(name) or 0.0
    spread = spread if math.isfinite(spread) else 0.0
    panel.errorbar([left], [value], yerr=[spread], capsize=5, zorder=3, **look | {"markersize": 8, "marker": "*"})


def _network_names(result: Discovery, names: Sequence[str]) -> dict[str, str]:
    """Which of the network's own constants belong to these, and what they are called."""
    own = {name for row in limit_rows(result) for name in row.network or ()}
    return {name: f"{name} of the network" for name in names if name in own}


def _column(rows: Sequence[Numbers | None], name: str) -> Float[np.ndarray, " steps"]:
    return np.array([(row or {}).get(name) for row in rows], float)


def _look(k: int) -> dict[str, Any]:
    return {"color": COLOURS[k % 7], "marker": MARKERS[k % 7], "markersize": 5, "linewidth": 1.2}
