"""The whole paper on one self-contained page: claims, figures, the data behind each, and how it was made."""

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

# Classes of the style by verdict.
VERDICT_CLASSES = {
    "holds": "holds",
    "holds under a condition": "measured",
    "does not hold": "fails",
    "cannot be tested from the text": "unknown",
    "not run here": "unknown",
}
MEDIA_TYPES = {"csv": "text/csv", "json": "application/json"}
# Characters of SVG; larger drawings are embedded as PNG.
LARGEST_SVG = 600_000
# The schemes that are typeset, in the paper's order, each with a title and a sentence.
FORMULAS = {
    "euler": ("The first-order scheme", "The reference of the paper, and what symbolic regression finds again."),
    "midpoint-printed": ("GNN-Midpoint, as printed", "The half step adds Δt S, which costs the second order in time."),
    "midpoint": ("The midpoint rule", "What the small-step limit at θ = ½ gives: half of the source in the half step."),
    "two-hop-printed": ("GNN-2ndOrder, as printed", "Areas and distances are missing: it solves another equation."),
    "two-hop": ("Two hops, corrected", "The midpoint rule written over paths of two faces: equal to it to rounding."),
    "crank-nicolson": ("Crank–Nicolson", "With the sign that diffusion has, and the source."),
}


@dataclass(frozen=True)
class Download:
    """A file inside the page."""

    label: str
    name: str
    href: str


@dataclass(frozen=True)
class Section:
    """A part of the paper on the page: its document, also as a file, its figures with files, and its table."""

    name: str
    part: Part
    document: Document
    download: Download
    pictures: Sequence[tuple[str, Shown, Sequence[Download]]]
    table: Table | None


def make_section(name: str, part: Part, document: Document) -> Section:
    """The section of a part: its figures, drawn, and files of the data of each."""
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
    return Section(name, part, document, _make_download(f"{name}.json", text), pictures, table)


def reproduction_page(
    sections: Sequence[Section],
    rows: Sequence[Document],
    counts: Mapping[str, int],
    *,
    table: str,
    missing: Sequence[str],
    command: str,
) -> str:
    """The page as text; `table` is the claims as CSV."""
    script = Markup(files("fluxforge.report").joinpath("templates/claims.js").read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return page(
        "reproduction.html",
        sections=sections,
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
    """A figure as SVG, or as PNG if the SVG is longer than LARGEST_SVG."""
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
    """The data of a figure: as CSV, its tables one below the other with a column for the table's name; and as JSON."""
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
    """A file as a data URL: percent-encoded, thus readable, if it is short, otherwise in base 64."""
    suffix = name.rpartition(".")[2]
    coded = base64.b64encode(text.encode()).decode()
    content = f",{quote(text, safe='')}" if len(text) < 2000 else f";base64,{coded}"
    return Download(suffix.upper(), name, f"data:{MEDIA_TYPES[suffix]};charset=utf-8{content}")
