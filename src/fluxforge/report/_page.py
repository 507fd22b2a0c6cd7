"""What pages and figures share: templates, inline pictures, panels, numbers for people, and tables of documents."""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fluxforge.mesh import save_figure
from fluxforge.report._mathml import round_decimals, typeset_number, typeset_text
from fluxforge.run._record import Document

# Classes of the style by the verdict of a certificate's line.
CLASSES = {
    "holds": "holds",
    "fails": "fails",
    "measured": "measured",
    "not established": "unknown",
    "left out": "unknown",
}
# A line of metrics: numbers by name, a list of them where several networks are trained.
Metric: TypeAlias = Mapping[str, float | list[float | None] | None]
# Keys of a line of metrics that are not terms of the loss.
NOT_TERMS = ("step", "skipped", "learning_rate")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_POWER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d+)(?![\w.])")


@dataclass(frozen=True)
class Shown:
    """A figure in a page: the SVG, the caption, the alternative text for screen readers, and its CSS classes."""

    svg: Markup
    caption: str
    alt: str
    look: str = ""


def embed_figure(figure: Figure, name: str, caption: str, *, alt: str = "", look: str = "") -> Shown:
    """A figure made ready for a page; `look` names classes of the style: `narrow`, or `light` on dark pages too."""
    return Shown(_svg(figure, name), caption, alt or caption, look)


def page(template: str, **content: Any) -> str:
    """A template filled in; what is undefined is an error, and text is escaped."""
    environment = Environment(loader=PackageLoader("fluxforge.report"), autoescape=True, undefined=StrictUndefined)
    environment.filters.update(number=number, decimals=decimals, rounded=round_decimals, spell_powers=spell_powers)
    environment.filters.update(typeset_text=typeset_text, typeset_number=typeset_number)
    return environment.get_template(template).render(classes=CLASSES, version=version("fluxforge"), **content)


def terms(metrics: Sequence[Metric]) -> list[str]:
    """The names of the terms of the loss that were recorded."""
    return [name for name in (metrics[-1] if metrics else {}) if name not in NOT_TERMS]


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


def spell_powers(text: str) -> str:
    """A text with its numbers of the form 1.5e-16 spelt out: 1.5 × 10⁻¹⁶, or 0.15 where that is short."""
    return _POWER.sub(lambda found: number(float(found[0]), len(found[1].replace(".", ""))), text)


def _svg(figure: Figure, name: str) -> Markup:
    """The figure inline: no XML head, as wide as its place, identifiers of its own so that figures do not meet."""
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
    """So many panels, in rows of so many columns: by default one row."""
    columns = count if columns is None else min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(4.6 * columns + 0.4, 3.7 * rows), layout="constrained")
    axes = tuple(figure.subplots(rows, columns, squeeze=False).flat)
    for panel in axes[count:]:
        panel.remove()
    for panel in axes[:count]:
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
    return figure, axes[:count]


# A row of a table: a value by column.
Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A table for readers: its caption, the names of its columns, and rows of text."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(document: Document) -> dict[str, list[Row]]:
    """Lists of records, records of records and lists of numbers, by their place: `networks`, `direct/θ = 1/rows`."""
    return {where: rows for where, rows in _find_tables(document, ()) if rows}


def table_csv(rows: Sequence[Row]) -> str:
    """A table as CSV, with every column that any row has."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _find_tables(value: Any, where: tuple[str, ...]) -> Iterator[tuple[str, list[Row]]]:
    if isinstance(value, Mapping):
        yield from _of_mapping(value, where)
    elif _is_list(value) and where:
        records = [each for each in value if isinstance(each, Mapping)]
        if records and len(records) == len(value):
            yield "/".join(where), [_flat(each) for each in records]
            for k, each in enumerate(records):
                deeper = {name: inner for name, inner in each.items() if _is_table(inner)}
                yield from _find_tables(deeper, (*where, str(k)))


def _of_mapping(value: Document, where: tuple[str, ...]) -> Iterator[tuple[str, list[Row]]]:
    records = {name: each for name, each in value.items() if isinstance(each, Mapping) and _flat(each)}
    if where and len(records) > 1 and len(records) == len(value):
        yield "/".join(where), [{"name": name, **_flat(each)} for name, each in records.items()]
    columns = {name: each for name, each in value.items() if _is_column(each)}
    if where and columns and len({len(each) for each in columns.values()}) == 1:
        yield "/".join(where), [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for name, each in value.items():
        yield from _find_tables(each, (*where, str(name)))


def _flat(record: Document) -> Row:
    """Numbers and texts of a record, and those of the records in it as `outer.inner`."""
    row: Row = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            row |= {f"{name}.{inner}": each for inner, each in _flat(value).items()}
        elif not _is_list(value):
            row[name] = value
    return row


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_table(value: Any) -> bool:
    return _is_list(value) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _is_column(value: Any) -> bool:
    return _is_list(value) and len(value) > 1 and not any(_is_list(each) or isinstance(each, Mapping) for each in value)
