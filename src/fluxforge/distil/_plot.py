"""The picture of a front: what a longer formula buys."""

import textwrap

import sympy as sp
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fluxforge.distil._front import Candidate, Front
from fluxforge.expression import to_text

_LINE, _CHOSEN = "#0072B2", "#D55E00"
_WIDTH = 46
_LOWEST = 1e-16
"""Where an error of zero is drawn."""


def front_picture(front: Front, chosen: Candidate, title: str) -> Figure:
    """Error, on a logarithmic axis, against complexity, with the chosen formula marked and written out."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    lengths = [candidate.complexity for candidate in front]
    errors = [max(candidate.error, _LOWEST) for candidate in front]
    axes.semilogy(lengths, errors, drawstyle="steps-post", color=_LINE, linewidth=1.2, alpha=0.5)
    axes.semilogy(lengths, errors, "o", color=_LINE, markersize=5)
    _mark(axes, chosen)
    axes.set(xlabel="complexity (operators, variables, constants)", ylabel="relative error", title=title)
    axes.margins(x=0.05, y=0.12)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def rounded_text(expr: sp.Expr, digits: int = 4) -> str:
    """The formula with its decimals rounded to so many digits, for people."""
    rounded = {number: sp.Float(f"{float(number):.{digits}g}") for number in expr.atoms(sp.Float)}
    return to_text(expr.xreplace(rounded))


def _mark(axes: Axes, chosen: Candidate) -> None:
    """The formula stands in the corner that a falling curve leaves free, an arrow joins it to its point."""
    point = (chosen.complexity, max(chosen.error, _LOWEST))
    axes.semilogy(*point, "o", color=_CHOSEN, markersize=9, zorder=3)
    formula = textwrap.fill(rounded_text(chosen.expression), _WIDTH, break_long_words=False)
    axes.annotate(
        f"{formula}\ncomplexity {chosen.complexity}, error {chosen.error:.2g}",
        xy=point,
        xytext=(0.98, 0.95),
        textcoords="axes fraction",
        ha="right",
        va="top",
        fontsize=9,
        color=_CHOSEN,
        arrowprops={"arrowstyle": "->", "color": _CHOSEN, "shrinkB": 7, "relpos": (0.5, 0)},
    )
