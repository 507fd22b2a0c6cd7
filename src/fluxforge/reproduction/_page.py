"""Everything in a folder as one page, `index.html`, with the claims beside it as JSON and CSV."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fluxforge._files import write_document, write_text
from fluxforge.report import Formula, Section, reproduction_page, section
from fluxforge.reproduction._claims import as_csv, claims, counted
from fluxforge.reproduction._parts import PARTS
from fluxforge.reproduction._run import documents
from fluxforge.scheme import find

# What is typeset, in the paper's order, and what is to be said of each.
FORMULAS = {
    "euler": ("The first-order scheme", "The reference of the paper, and what symbolic regression finds again."),
    "midpoint-printed": ("GNN-Midpoint, as printed", "The half step adds Δt S, which costs the second order in time."),
    "midpoint": ("The midpoint rule", "What the small-step limit at θ = ½ gives: half of the source in the half step."),
    "two-hop-printed": ("GNN-2ndOrder, as printed", "Areas and distances are missing: it solves another equation."),
    "two-hop": ("Two hops, put right", "The midpoint rule written over paths of two faces: equal to it to rounding."),
    "crank-nicolson": ("Crank–Nicolson", "With the sign that diffusion has, and the source."),
}


def write_reproduction(folder: Path, *, command: str = "") -> dict[str, Any]:
    """Write the page and the claims of all that is in a folder; return the claims and where they are."""
    found = documents(folder)
    rows = claims(found)
    counts = counted(rows)
    page = reproduction_page(
        [_section(name, document) for name, document in found.items()],
        rows,
        counts,
        formulas=[Formula(title, said, find(name)) for name, (title, said) in FORMULAS.items()],
        table=as_csv(rows),
        missing=[name for name in PARTS if name not in found],
        command=command,
    )
    write_document(folder / "claims.json", "claims", 1, {"counts": counts, "claims": rows})
    write_text(folder / "claims.csv", as_csv(rows))
    write_text(folder / "index.html", page)
    return {"counts": counts, "claims": rows, "page": str(folder / "index.html")}


def _section(name: str, document: Mapping[str, Any]) -> Section:
    part = PARTS[name]
    return section(
        name,
        document,
        place=part.section,
        summary=part.summary,
        methods=part.methods,
        figures={title: (each.draw(document), each.caption, each.keys) for title, each in part.figures.items()},
        table=None if part.table is None else part.table(document),
    )
