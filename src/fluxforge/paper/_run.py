"""The parts of the paper in its order, and functions that run a part by name and write the page of all results."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from matplotlib.figure import Figure

from fluxforge import recipe
from fluxforge._files import read_document, write_document, write_text
from fluxforge.errors import InputError
from fluxforge.paper import _figures_consistency, _figures_convergence, _figures_setup, _figures_training
from fluxforge.paper._claims import Claim, count_verdicts, format_csv, judge_claims
from fluxforge.paper._network_kinds import read_carried
from fluxforge.paper._page import make_section, reproduction_page
from fluxforge.paper._part import PART_TEXTS, VERSION, Module, Part, run_part
from fluxforge.paper.studies import (
    consistency,
    controls,
    convergence,
    generalisation,
    higher_order,
    memory,
    rates,
    setup,
    symbolic,
    theorems,
)
from fluxforge.report._arms_figures import extrapolation_figure, generalisation_figure
from fluxforge.report._tables import Table
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.run._record import Document

MODULES: Mapping[str, Module] = {
    "setup": setup,
    "generalisation": generalisation,
    "theorems": theorems,
    "rates": rates,
    "controls": controls,
    "symbolic": symbolic,
    "higher-order": higher_order,
    "convergence": convergence,
    "memory": memory,
    "consistency": consistency,
}
DRAW: Mapping[str, Callable[[Any], Figure]] = {
    "training-data": _figures_setup.training_data_figure,
    "message-passing": _figures_setup.message_passing_figure,
    "sample-meshes": _figures_setup.sample_meshes_figure,
    "two-hop-neighbourhood": _figures_setup.two_hop_figure,
    "generalisation": lambda result: generalisation_figure(
        {"sparse": result.sparse, "dense": result.dense}, result.seeds
    ),
    "extrapolation": lambda result: extrapolation_figure(result.extrapolation),
    "theorems": _figures_consistency.theorems_figure,
    "rates": _figures_training.rates_figure,
    "symbolic": _figures_training.symbolic_figure,
    "constant-against-step": _figures_training.pinn_figure,
    "constants": _figures_training.constants_figure,
    "four-layers": _figures_training.four_layers_figure,
    "residuals": _figures_training.residuals_figure,
    "convergence": _figures_convergence.residual_map,
    "convergence-as-printed": _figures_convergence.printed_residual_map,
    "errors": _figures_convergence.errors_figure,
    "memory": _figures_convergence.memory_figure,
    "diffusivity": _figures_consistency.diffusivity_figure,
    "plateau": _figures_consistency.plateau_figure,
}
TABLES: Mapping[str, Callable[[Any], Table]] = {
    "rates": _figures_training.rates_table,
    "controls": _figures_training.controls_table,
}


PARTS: Mapping[str, Part] = MappingProxyType(
    {
        name: Part(
            **msgspec.structs.asdict(text),
            module=MODULES[name],
            draw={title: DRAW[title] for title in text.figures},
            table=TABLES.get(name),
        )
        for name, text in PART_TEXTS.items()
    }
)


class Reproduction(msgspec.Struct, frozen=True):
    """The claims judged from all results in a folder, their numbers by verdict, and the path of the page."""

    counts: dict[str, int]
    claims: list[Claim]
    page: str


def reproduce(
    name: str,
    *,
    preset: str = "quick",
    changes: recipe.Changes | None = None,
    folder: Path | None = None,
    again: bool = False,
    tell: Progress = silent,
    warn: Warn = lambda _: None,
) -> Document:
    """Run one part and return its document; with a folder, write the document, figures and runs to a subfolder of it.

    A part that is finished in the folder is skipped unless its inputs have changed or `again` is set. Its files are
    then compared with the digests recorded when it finished: missing figures are drawn, and `warn` is called with one
    line per file that is missing or changed. Runs of recipes within a part are skipped by their own inputs, so that
    trained networks are reused when other inputs of the part change.
    Raises InputError if there is no such part, or if another process runs it in the same folder.
    """
    if name not in PARTS:
        raise InputError(f"there is no part {name!r} of the paper; choose from {', '.join(PARTS)}")
    config = PARTS[name].module.Config(preset=preset, changes=changes or {})
    return run_part(name, PARTS[name], config, folder, again=again, tell=tell, warn=warn)


def read_documents(folder: Path) -> dict[str, Document]:
    """The documents of the parts in a folder, by name: from NAME/NAME.json, as runs write it, or else NAME.json."""
    documents: dict[str, Document] = {}
    for name in PARTS:
        for path in (folder / name / f"{name}.json", folder / f"{name}.json"):
            if path.exists():
                documents[name] = read_document(path, name, VERSION)
                break
    return documents


def write_reproduction(folder: Path, *, command: str = "") -> Reproduction:
    """Write index.html, claims.json and claims.csv of all results in a folder to this folder; return the claims."""
    documents = read_documents(folder)
    claims = judge_claims(documents, carried=read_carried(folder))
    counts = count_verdicts(claims)
    rows = [msgspec.to_builtins(claim) for claim in claims]
    page = reproduction_page(
        [make_section(name, PARTS[name], document) for name, document in documents.items()],
        rows,
        counts,
        table=format_csv(claims),
        missing=[name for name in PARTS if name not in documents],
        command=command,
    )
    write_document(folder / "claims.json", "claims", 1, {"counts": counts, "claims": rows})
    write_text(folder / "claims.csv", format_csv(claims))
    write_text(folder / "index.html", page)
    return Reproduction(counts, claims, str(folder / "index.html"))
