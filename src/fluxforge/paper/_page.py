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

from fluxforge.report._page import Shown, embed_figure, page, typeset
from fluxforge.report._tables import Row, Table, table_csv, tables
from fluxforge.run._record import Document
from fluxforge.scheme._scheme import Scheme

# Classes of the style by verdict.
LOOKS = {
    "holds": "holds",
    "holds under a condition": "measured",
    "does not hold": "fails",
    "cannot be tested from the text": "unknown",
    "not run here": "unknown",
}
# A drawing with more text than this is put in as pixels.
LARGEST_SVG = 600_000


@dataclass(frozen=True)
class Download:
    """A file inside the page."""

    label: str
    name: str
    href: str


@dataclass(frozen=True)
class Section:
    """A part of the paper on the page."""

    name: str
    place: str
    summary: str
    methods: str
    pictures: Sequence[tuple[str, Shown, Sequence[Download]]]
    document: Download
    environment: Document
    command: str
    took: float | None
    preset: str
    table: Table | None = None


@dataclass(frozen=True)
class Formula:
    """A scheme to be typeset, and what is to be said of it."""

    title: str
    said: str
    scheme: Scheme


def section(
    name: str,
    document: Document,
    *,
    place: str,
    summary: str,
    methods: str,
    figures: Mapping[str, tuple[Figure, str, Sequence[str]]],
    table: Table | None = None,
) -> Section:
    """A part made ready for the page; a figure comes with its caption and the keys of what it was drawn from."""
    found = tables(document)
    pictures = [
        (title, _picture(figure, f"{name}-{title}", caption), _downloads(title, document, found, wanted))
        for title, (figure, caption, wanted) in figures.items()
    ]
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Section(
        name=name,
        place=place,
        summary=summary,
        methods=methods,
        pictures=pictures,
        document=Download("JSON", f"{name}.json", _data(text, "application/json")),
        environment=document.get("environment", {}),
        command=f"fluxforge reproduce {name} --preset {document.get('preset', 'quick')}",
        took=document.get("took_s"),
        preset=str(document.get("preset", "")),
        table=table,
    )


def reproduction_page(
    sections: Sequence[Section],
    rows: Sequence[Document],
    counts: Mapping[str, int],
    *,
    formulas: Sequence[Formula],
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
        looks=LOOKS,
        formulas=[(each.title, each.said, typeset(each.scheme)) for each in formulas],
        downloads=[
            Download("CSV", "claims.csv", _data(table, "text/csv")),
            Download("JSON", "claims.json", _data(json.dumps(list(rows), ensure_ascii=False), "application/json")),
        ],
        missing=missing,
        script=script,
        script_digest=digest,
        command=command,
    )


def _picture(figure: Figure, name: str, caption: str) -> Shown:
    found = embed_figure(figure, name, caption, look="light")
    return found if len(found.svg) <= LARGEST_SVG else Shown(_pixels(figure), caption, caption, "light")


def _pixels(figure: Figure) -> Markup:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    coded = base64.b64encode(buffer.getvalue()).decode()
    return Markup('<img alt="" src="data:image/png;base64,{}">').format(coded)


def _downloads(title: str, document: Document, found: Mapping[str, list[Row]], wanted: Sequence[str]) -> list[Download]:
    """What a figure was drawn from: its tables one below the other, each row with its place; and the same as JSON."""
    rows = [
        {"table": where, **row}
        for where, table in found.items()
        if any(where == each or where.startswith(f"{each}/") for each in wanted)
        for row in table
    ]
    own = {key: document[key] for key in wanted if key in document}
    if not own:
        return []
    text = json.dumps(own, ensure_ascii=False, allow_nan=False)
    return [
        Download("CSV", f"{title}.csv", _data(table_csv(rows), "text/csv")),
        Download("JSON", f"{title}.json", _data(text, "application/json")),
    ]


def _data(text: str, kind: str) -> str:
    """A text as a data URL: short ones readable, others in base 64."""
    if len(text) < 2000:
        return f"data:{kind};charset=utf-8,{quote(text, safe='')}"
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"
