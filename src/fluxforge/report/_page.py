"""Functions for all pages and figures: templates, inline figures, panels, numbers as text, formulas as MathML.

Browsers typeset MathML; latex2mathml converts a formula's LaTeX to it.
"""

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from latex2mathml.converter import convert
from markupsafe import Markup, escape
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser

from fluxforge._files import write_text
from fluxforge.errors import ExpressionError
from fluxforge.expression import WORDS
from fluxforge.expression._parse import parse
from fluxforge.mesh import save_figure
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme.emit._latex import emit_latex, formula_latex

# CSS class of each verdict of a certificate's line.
CLASSES = {
    "holds": "holds",
    "fails": "fails",
    "measured": "measured",
    "not established": "unknown",
    "left out": "unknown",
}
# A line of metrics: numbers by name, a list of them where several networks are trained.
Metric: TypeAlias = Mapping[str, float | list[float | None] | None]
# Inches beyond which letters of a figure would be too small on a narrow screen.
WIDE = 7.0
# Keys of a line of metrics that are not terms of the loss.
NOT_TERMS = ("step", "skipped", "learning_rate")
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_POWER_OF = re.compile(r"(?:\^|\*\*)(-?\d+)(?![\w.])")
_INDEXED = re.compile(r"(?<![\w./-])([a-z])(\d)(?!\w|\.\w)")
_POWER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d+)(?![\w.])")
_MINUS = re.compile(r"(?<![\w.)\]])-(?=\d)|(?<= )-(?= )")
_PRODUCT = re.compile(r"(?<=\d)\*(?=[a-z])")
_INDEXED_NAME = re.compile(r"(?<![\w.])((?:Δt|[A-Za-z])_[A-Za-z]+|[A-Za-z]+_[A-Za-z])(?!\w)")
_DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?(?![\w.])")
_FRACTION = re.compile(r"-?\d+/\d+")
_NAME = re.compile(r"[A-Za-z]\w*")
_MATH_ROW = re.compile(r"<math[^>]*><mrow>(.*)</mrow></math>", re.DOTALL)
_CHARACTER = re.compile(r"&#x([0-9A-F]+);")
# Replacements in latex2mathml's output, for browsers: no space around ∂ and /, an upright Δ, a bar over a letter.
_MATHML_REPLACEMENTS = (
    ("<mo>∂</mo>", "<mi>∂</mi>"),
    ("<mo>/</mo>", '<mo lspace="0" rspace="0">/</mo>'),
    ("<mi>Δ</mi>", '<mi mathvariant="normal">Δ</mi>'),
    ('<mo accent="true">―</mo>', '<mo accent="true" stretchy="true">¯</mo>'),
)


@dataclass(frozen=True)
class Shown:
    """A figure in a page: the SVG, the caption, the alternative text for screen readers, and its CSS classes."""

    svg: Markup
    caption: str
    alt: str
    look: str = ""


def embed_figure(figure: Figure, name: str, caption: str, *, alt: str = "", look: str = "") -> Shown:
    """A figure as inline SVG with its texts; `look` names CSS classes: `narrow`, or `light` on dark pages too.

    A figure of several panels is `wide`: a narrow screen scrolls it, since its letters could not be read if it shrank.
    """
    if figure.get_figwidth() > WIDE:
        look = f"{look} wide".strip()
    return Shown(figure_svg(figure, name), caption, alt or caption, look)


def page(template: str, **content: Any) -> str:
    """Render a template with these variables; an undefined one is an error, and text is escaped."""
    environment = Environment(loader=PackageLoader("fluxforge.report"), autoescape=True, undefined=StrictUndefined)
    environment.filters.update(number=number, decimals=decimals, rounded=round_decimals, set_text=set_text)
    environment.filters.update(typeset_text=typeset_text, typeset_number=typeset_number, look=CLASSES.__getitem__)
    return environment.get_template(template).render(version=version("fluxforge"), **content)


def draw_legend_below(figure: Figure, panel: Axes, columns: int | None = None) -> None:
    """Draw the legend of one panel below all of them, in one row unless `columns` is given."""
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns or len(labels), fontsize=8)


def list_terms(metrics: Sequence[Metric]) -> list[str]:
    """The names of the terms of the loss that were recorded."""
    return [name for name in (metrics[-1] if metrics else {}) if name not in NOT_TERMS]


def save_figures(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Save each figure as PNG and SVG; return the paths."""
    paths = [folder / f"{name}{suffix}" for name in figures for suffix in (".png", ".svg")]
    for path in paths:
        save_figure(figures[path.stem], path, dpi=130)
    return paths


def write_report(folder: Path, text: str, figures: Mapping[str, Figure]) -> list[Path]:
    """Write a page as report.html, and each figure as PNG and SVG; return the paths."""
    write_text(folder / "report.html", text)
    return [folder / "report.html", *save_figures(figures, folder)]


def number(value: float | None, digits: int = 3) -> str:
    """A number as text, like 1.23 × 10⁻⁴, 0.0123 or 12.3; a dash if it is missing or not finite."""
    if value is None or not math.isfinite(value):
        return "—"
    text = f"{value:.{digits}g}"
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    return text.replace("-", "−")


def decimals(value: float | None, places: int = 3) -> str:
    """A number with `places` decimals, like −1.000; a dash if it is missing or not finite."""
    return "—" if value is None or not math.isfinite(value) else f"{value:.{places}f}".replace("-", "−")


def set_powers(text: str) -> str:
    """A text with 1.5e-16 as 1.5 × 10⁻¹⁶ (and 1.5e-1 as 0.15), Δt^2 and z**2 as Δt² and z², and a1 as a₁.

    A hyphen before a number or between blanks becomes a minus sign, 2*z becomes 2 z.
    """
    text = _POWER_OF.sub(lambda match: match[1].translate(_SUPERSCRIPTS), text)
    text = _INDEXED.sub(lambda match: match[1] + match[2].translate(_SUBSCRIPTS), text)
    text = _POWER.sub(lambda match: number(float(match[0]), len(match[1].replace(".", ""))), text)
    return _PRODUCT.sub("\N{NO-BREAK SPACE}", _MINUS.sub("−", text))


def set_text(text: str) -> Markup:
    """A text as `set_powers` sets it, and Δt_max and velocity_n with their index below."""
    return Markup(_INDEXED_NAME.sub(_set_index, str(escape(set_powers(text)))))


def _set_index(match: re.Match[str]) -> str:
    name, _, index = match[0].partition("_")
    return f"{name}<sub>{index}</sub>"


def figure_svg(figure: Figure, name: str) -> Markup:
    """The figure as inline SVG without XML head and fixed size, its identifiers prefixed by `name`.

    Without the prefix, the identifiers of several figures of a page would clash.
    """
    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True, dpi=160)
    text = buffer.getvalue()
    text = re.sub(r"\s(width|height)=\"[\d.]+pt\"", "", text[text.index("<svg") :], count=2)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return Markup(re.sub(r"(\bid=\"|href=\"#|url\(#)", rf"\1{name}-", text))


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7f7f7f")
MARKERS = "osD^vPX"


def panels(count: int, *, columns: int | None = None) -> tuple[Figure, tuple[Axes, ...]]:
    """A figure with `count` panels in rows of `columns`; by default in one row."""
    columns = count if columns is None else min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(4.6 * columns + 0.4, 3.7 * rows), layout="constrained")
    axes = tuple(figure.subplots(rows, columns, squeeze=False).flat)
    for panel in axes[count:]:
        panel.remove()
    for panel in axes[:count]:
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8, which="both")
    return figure, axes[:count]


def typeset(scheme: Scheme) -> Markup:
    """The formulas of a scheme, decimals rounded, as MathML: a row per message and output, aligned at equals signs."""
    latex = _round_latex(emit_latex(scheme))
    body = latex[latex.index(r"\begin{aligned}") + len(r"\begin{aligned}") : latex.index(r"\end{aligned}")]
    return align([[mathml(cell) for cell in row.split("&")] for row in body.split("\\\\\n")])


def align(rows: list[list[Markup]]) -> Markup:
    """Rows of MathML cells as one displayed table."""
    filled = Markup("").join(
        Markup("<mtr>{}</mtr>").format(Markup("").join(Markup("<mtd>{}</mtd>").format(cell) for cell in row))
        for row in rows
    )
    return Markup('<math display="block"><mtable displaystyle="true">{}</mtable></math>').format(filled)


def typeset_text(formula: str, *, sum_of: str = "") -> Markup:
    """A formula or equation given as text, as inline MathML with rounded decimals; as code if it cannot be parsed.

    `sum_of` names the sum over neighbours N whose terms the formula gives.
    """
    shown = round_decimals(formula)
    try:
        latex = " = ".join(_to_latex(side) for side in shown.split(" = "))
        before = rf"{_to_latex(sum_of)} = \sum_{{N}} " if sum_of else ""
    except ExpressionError:
        return Markup("<code>{}</code>").format(f"{sum_of} = Σ {shown}" if sum_of else shown)
    return Markup('<math alttext="{}">{}</math>').format(shown, mathml(before + latex))


def typeset_equation(equation: str) -> Markup:
    """An equation with a long sum as inline MathML: one element per summand, since browsers break no line in one."""
    depth = np.cumsum([(letter == "(") - (letter == ")") for letter in equation])
    cuts = [k for k in range(len(equation)) if depth[k] == 0 and equation[k : k + 3] in (" + ", " - ")]
    first, *rest = (equation[a:b].strip() for a, b in pairwise((0, *cuts, len(equation))))
    return Markup(" ").join((typeset_text(first), *(inline_math(each[0]) + typeset_text(each[2:]) for each in rest)))


def inline_math(latex: str) -> Markup:
    """LaTeX as an inline math element."""
    return Markup("<math>{}</math>").format(mathml(latex))


def plot_formula(formula: str) -> str | None:
    """A formula given as text, as LaTeX between dollar signs for labels of plots; None if it cannot be typeset."""
    try:
        label = f"${_to_latex(round_decimals(formula, 4))}$".replace(r"\frac", r"\dfrac")
        MathTextParser("path").parse(label)
    except (ExpressionError, ValueError):
        return None
    return label


def typeset_number(text: str) -> Markup | str:
    """A fraction as MathML; any other text unchanged."""
    return typeset_text(text) if _FRACTION.fullmatch(text) else text


def round_decimals(formula: str, digits: int = 5) -> str:
    """The text of a formula with its decimals rounded to `digits` significant digits."""
    return _DECIMAL.sub(lambda match: f"{float(match[0]):.{digits}g}", formula)


def _round_latex(latex: str) -> str:
    r"""LaTeX with its decimals, whose exponents are set as \cdot 10^{…}, rounded to five significant digits."""

    def round_match(match: re.Match[str]) -> str:
        return np.format_float_positional(float(match[0]), precision=5, fractional=False, trim="-")

    return _DECIMAL.sub(round_match, latex)


def mathml(latex: str) -> Markup:
    """LaTeX as the content of a math element; empty for empty LaTeX."""
    if not latex.strip():
        return Markup("")  # latex2mathml rejects it, but rows that continue a long sum begin with an empty cell
    text = convert(latex.replace(r"\mathrm", r"\text"), display="block")
    match = _MATH_ROW.fullmatch(text)
    inside = _CHARACTER.sub(_unescape_character, match[1] if match else "")
    for written, better in _MATHML_REPLACEMENTS:
        inside = inside.replace(written, better)
    return Markup(inside)


def _to_latex(formula: str) -> str:
    return formula_latex(parse(formula, set(_NAME.findall(formula)) - WORDS))


def _unescape_character(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return match[0] if character in '<>&"' else character
