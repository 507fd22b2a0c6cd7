"""All results on one self-contained HTML page: claims, figures with their data, and how they were made."""

import base64
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from urllib.parse import quote

from markupsafe import Markup
from matplotlib.figure import Figure

from fluxforge.paper._part import Part
from fluxforge.report._page import Shown, embed_figure, page, typeset
from fluxforge.report._tables import Row, Table, table_csv, tables
from fluxforge.run._record import Document
from fluxforge.scheme._document import find

# CSS class of each verdict.
VERDICT_CLASSES = {
    "holds": "holds",
    "holds under a condition": "measured",
    "does not hold": "fails",
    "cannot be tested from the text": "unknown",
    "not run here": "unknown",
}
MEDIA_TYPES = {"csv": "text/csv", "json": "application/json"}
# Number of characters of SVG above which a figure is embedded as PNG.
LARGEST_SVG = 600_000
# Title and a sentence for each scheme that is typeset, in the paper's order.
FORMULAS = {
    "euler": ("The first-order scheme", "The reference of the paper, which symbolic regression recovers."),
    "midpoint-printed": ("GNN-Midpoint, as printed", "The half step adds Δt S, so that second order in time is lost."),
    "midpoint": ("The midpoint rule", "The small-step limit at θ = ½, with half of the source in the half step."),
    "two-hop-printed": ("GNN-2ndOrder, as printed", "Areas and distances are missing: it solves another equation."),
    "two-hop": (
        "Two hops, corrected",
        "The midpoint rule written over paths of two faces: equal to it up to round-off.",
    ),
    "crank-nicolson": ("Crank–Nicolson", "With the sign of diffusion, and with the source."),
}


@dataclass(frozen=True)
class Download:
    """A file in the page: label of the link, file name, and content as a data URL."""

    label: str
    name: str
    href: str


@dataclass(frozen=True)
class Section:
    """A part of the paper on the page: how it was run, its document for download, figures with downloads, its table.

    `took` is the number of seconds that it took; None if the document does not state it.
    """

    name: str
    part: Part
    preset: str
    took: float | None
    environment: Mapping[str, str]
    download: Download
    pictures: Sequence[tuple[str, Shown, Sequence[Download]]]
    table: Table | None


def make_section(name: str, part: Part, document: Document) -> Section:
    """The section of a part from its document: figures are drawn, with the data of each for download."""
    result, by_table = part.read(document), tables(document)
    pictures = [
        (
            title,
            _embed(part.draw[title](result), f"{name}-{title}", figure.caption),
            _make_downloads(title, document, by_table, figure.keys),
        )
        for title, figure in part.figures.items()
    ]
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    table = None if part.table is None else part.table(result)
    return Section(
        name=name,
        part=part,
        preset=document.get("preset", "quick"),
        took=document.get("took_s"),
        environment=document.get("environment", {}),
        download=_make_download(f"{name}.json", text),
        pictures=pictures,
        table=table,
    )


def reproduction_page(
    sections: Sequence[Section],
    rows: Sequence[Document],
    counts: Mapping[str, int],
    *,
    table: str,
    missing: Sequence[str],
    command: str,
) -> str:
    """The page as HTML text.

    `rows` are the claims, `counts` the numbers of claims by verdict, `table` the claims as CSV, and `missing` the parts
    that were not run.
    """
    script = Markup(files("fluxforge.report").joinpath("templates/claims.js").read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return page(
        "reproduction.html",
        sections=sections,
        present={section.name for section in sections},
        rows=rows,
        counts={verdict: count for verdict, count in counts.items() if count},
        places=list(dict.fromkeys(row["section"] for row in rows)),
        looks=VERDICT_CLASSES,
        formulas=[(*words, typeset(find(name))) for name, words in FORMULAS.items()],
        downloads=[
            _make_download("claims.csv", table),
            _make_download("claims.json", json.dumps(list(rows), ensure_ascii=False)),
        ],
        missing=missing,
        script=script,
        script_digest=digest,
        command=command,
    )


def _embed(figure: Figure, name: str, caption: str) -> Shown:
    """A figure for the page as SVG, or as PNG if the SVG has more than LARGEST_SVG characters."""
    shown = embed_figure(figure, name, caption, look="light")
    if len(shown.svg) <= LARGEST_SVG:
        return shown
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    coded = base64.b64encode(buffer.getvalue()).decode()
    return Shown(Markup('<img alt="" src="data:image/png;base64,{}">').format(coded), caption, caption, "light")


def _make_downloads(
    title: str, document: Document, by_table: Mapping[str, list[Row]], wanted: Sequence[str]
) -> list[Download]:
    """The data of a figure, under the keys `wanted` of the document, as JSON and as CSV; empty without data.

    The CSV file has all tables, one below the other, and a column with the name of the table.
    """
    rows = [
        {"table": where, **row}
        for where, table in by_table.items()
        if any(where == each or where.startswith(f"{each}/") for each in wanted)
        for row in table
    ]
    selected = {key: document[key] for key in wanted if key in document}
    if not selected:
        return []
    text = json.dumps(selected, ensure_ascii=False, allow_nan=False)
    return [
        _make_download(f"{title}.csv", table_csv(rows)),
        _make_download(f"{title}.json", text),
    ]


def _make_download(name: str, text: str) -> Download:
    """A file as a data URL: percent-encoded, which is readable, if it is short, otherwise in base 64."""
    suffix = name.rpartition(".")[2]
    coded = base64.b64encode(text.encode()).decode()
    content = f",{quote(text, safe='')}" if len(text) < 2000 else f";base64,{coded}"
    return Download(suffix.upper(), name, f"data:{MEDIA_TYPES[suffix]};charset=utf-8{content}")
