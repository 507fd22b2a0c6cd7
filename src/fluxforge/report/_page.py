"""What every page shares: templates, pictures inside the page and beside it, numbers for people."""

import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure

from fluxforge.certify import Verdict
from fluxforge.mesh import save_figure

CLASSES = {
    Verdict.HOLDS: "holds",
    Verdict.FAILS: "fails",
    Verdict.MEASURED: "measured",
    Verdict.UNKNOWN: "unknown",
    Verdict.LEFT_OUT: "unknown",
}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?(?![\w.])")


@dataclass(frozen=True)
class Shown:
    """A picture in a page: its drawing, the line under it, what it says to those who cannot see it, and its look."""

    svg: Markup
    caption: str
    alt: str
    look: str = ""


def shown(figure: Figure, name: str, caption: str, *, alt: str = "", look: str = "") -> Shown:
    """A figure made ready for a page; `look` names classes of the style: `narrow`, or `light` on dark pages too."""
    return Shown(_svg(figure, name), caption, alt or caption, look)


def page(template: str, **content: Any) -> str:
    """A template filled in; what is undefined is an error, and text is escaped."""
    environment = Environment(loader=PackageLoader("fluxforge.report"), autoescape=True, undefined=StrictUndefined)
    environment.filters.update(number=number, decimals=decimals, rounded=rounded)
    return environment.get_template(template).render(classes=CLASSES, version=version("fluxforge"), **content)


def save_figures(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Each figure as PNG and SVG."""
    paths = [folder / f"{name}{suffix}" for name in figures for suffix in (".png", ".svg")]
    for path in paths:
        save_figure(figures[path.stem], path, dpi=130)
    return paths


def number(value: float | None, digits: int = 3) -> str:
    """1.23 × 10⁻⁴, 0.0123, 12.3; a dash for what is missing or not finite."""
    if value is None or not math.isfinite(value):
        return "—"
    text = f"{value:.{digits}g}"
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa} × 10{str(int(exponent)).translate(_RAISED)}"
    return text.replace("-", "−")


def decimals(value: float | None, places: int = 3) -> str:
    """−1.000; a dash for what is missing or not finite."""
    return "—" if value is None or not math.isfinite(value) else f"{value:.{places}f}".replace("-", "−")


def rounded(formula: str, digits: int = 5) -> str:
    """A formula's text with its decimals shortened."""
    return _DECIMAL.sub(lambda found: f"{float(found[0]):.{digits}g}", formula)


def _svg(figure: Figure, name: str) -> Markup:
    """The figure inline: no XML head, as wide as its place, identifiers of its own so that figures do not meet."""
    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    text = buffer.getvalue()
    text = re.sub(r"\s(width|height)=\"[\d.]+pt\"", "", text[text.index("<svg") :], count=2)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return Markup(re.sub(r"(\bid=\"|href=\"#|url\(#)", rf"\1{name}-", text))
