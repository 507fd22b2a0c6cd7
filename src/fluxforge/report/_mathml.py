r"""Schemes and formulas as MathML, which browsers typeset: \frac{a}{b} → <mfrac>…</mfrac>. latex2mathml converts."""

import re

from latex2mathml.converter import convert
from markupsafe import Markup
from matplotlib.mathtext import MathTextParser

from fluxforge.errors import ExpressionError
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import WORDS
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme.emit._latex import emit_latex, formula_latex

_DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?(?![\w.])")
_FRACTION = re.compile(r"-?\d+/\d+")
_NAME = re.compile(r"[A-Za-z]\w*")
_OUTER = re.compile(r"<math[^>]*><mrow>(.*)</mrow></math>", re.DOTALL)
_CHARACTER = re.compile(r"&#x([0-9A-F]+);")
# What browsers set better than what latex2mathml writes: ∂ without space around it, scripts without space in them.
_MENDED = (
    ("<mo>∂</mo>", "<mi>∂</mi>"),
    ("<mo>/</mo>", '<mo lspace="0" rspace="0">/</mo>'),
    ("<mi>Δ</mi>", '<mi mathvariant="normal">Δ</mi>'),
    ('<mo accent="true">―</mo>', '<mo accent="true" stretchy="true">¯</mo>'),
)


def typeset(scheme: Scheme) -> Markup:
    """The scheme's formulas, a message or output a row, aligned at the equals signs."""
    latex = emit_latex(scheme)
    body = latex[latex.index(r"\begin{aligned}") + len(r"\begin{aligned}") : latex.index(r"\end{aligned}")]
    return align([[mathml(cell) for cell in row.split("&")] for row in body.split("\\\\\n")])


def align(rows: list[list[Markup]]) -> Markup:
    """Rows of cells as one displayed table."""
    filled = Markup("").join(
        Markup("<mtr>{}</mtr>").format(Markup("").join(Markup("<mtd>{}</mtd>").format(cell) for cell in row))
        for row in rows
    )
    return Markup('<math display="block"><mtable displaystyle="true">{}</mtable></math>').format(filled)


def typeset_text(formula: str, *, digits: int = 5, sum_of: str = "") -> Markup:
    """A formula or equation written as text, inline, its decimals rounded; as code where the parser refuses it.

    `sum_of` names the sum over neighbours N whose terms the formula gives.
    """
    shown = round_decimals(formula, digits)
    try:
        latex = " = ".join(_latex(side) for side in shown.split(" = "))
        before = rf"{_latex(sum_of)} = \sum_{{N}} " if sum_of else ""
    except ExpressionError:
        return Markup("<code>{}</code>").format(f"{sum_of} = Σ {shown}" if sum_of else shown)
    return Markup('<math alttext="{}">{}</math>').format(shown, mathml(before + latex))


def inline_math(latex: str) -> Markup:
    """LaTeX as a math element in a line of text."""
    return Markup("<math>{}</math>").format(mathml(latex))


def plot_formula(formula: str, *, digits: int = 4) -> str | None:
    """A formula written as text, for a label of a plot, between dollar signs; None if it cannot be set so."""
    try:
        label = f"${_latex(round_decimals(formula, digits))}$".replace(r"\frac", r"\dfrac")
        MathTextParser("path").parse(label)
    except (ExpressionError, ValueError):
        return None
    return label


def typeset_number(text: str) -> Markup | str:
    """A fraction, typeset; any other text as it is."""
    return typeset_text(text) if _FRACTION.fullmatch(text) else text


def round_decimals(formula: str, digits: int = 5) -> str:
    """A formula's text with its decimals shortened."""
    return _DECIMAL.sub(lambda found: f"{float(found[0]):.{digits}g}", formula)


def mathml(latex: str) -> Markup:
    """LaTeX as the inside of a math element."""
    if not latex.strip():
        return Markup("")  # latex2mathml refuses it; rows that continue a long sum begin with an empty cell
    text = convert(latex.replace(r"\mathrm", r"\text"), display="block")
    found = _OUTER.fullmatch(text)
    inside = _CHARACTER.sub(_character, found[1] if found else "")
    for written, better in _MENDED:
        inside = inside.replace(written, better)
    return Markup(inside)


def _latex(formula: str) -> str:
    return formula_latex(parse(formula, set(_NAME.findall(formula)) - WORDS))


def _character(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return found[0] if character in '<>&"' else character
