"""Run the parts of the paper, each in a folder of its own, and write the page of all results.

A part that is finished in the folder with the same inputs is skipped.
"""

import dataclasses
import hashlib
import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from fluxforge import recipe
from fluxforge._files import hold_folder, read_document, write_document, write_text
from fluxforge._machine import environment
from fluxforge.errors import DocumentError, InputError, StorageError
from fluxforge.mesh import save_figure
from fluxforge.paper._both_kinds import read_carried
from fluxforge.paper._claims import Claim, count_verdicts, format_csv, judge_claims
from fluxforge.paper._page import Formula, Section, reproduction_page, section
from fluxforge.paper._parts import PARTS, Part
from fluxforge.run._durable import digest_files, explain_failure, find_altered, read_digests, remove_strays
from fluxforge.run._folder import lock_folder
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.run._record import Document
from fluxforge.scheme._document import find

# The format version of the documents of parts.
VERSION = 1
# Entries of the environment that do not change a result.
NOT_INPUTS = frozenset({"platform", "system"})
# The record of a part's files, and the lock of the process that runs the part.
OUTPUTS, LOCK = "outputs.json", "part.lock"
# Seconds. Temporary files beside the parts are removed at this age only: other parts may be written there now.
AN_HOUR = 3600.0
# What is typeset, in the paper's order, and what is to be said of each.
FORMULAS = {
    "euler": ("The first-order scheme", "The reference of the paper, and what symbolic regression finds again."),
    "midpoint-printed": ("GNN-Midpoint, as printed", "The half step adds Δt S, which costs the second order in time."),
    "midpoint": ("The midpoint rule", "What the small-step limit at θ = ½ gives: half of the source in the half step."),
    "two-hop-printed": ("GNN-2ndOrder, as printed", "Areas and distances are missing: it solves another equation."),
    "two-hop": ("Two hops, corrected", "The midpoint rule written over paths of two faces: equal to it to rounding."),
    "crank-nicolson": ("Crank–Nicolson", "With the sign that diffusion has, and the source."),
}


@dataclass(frozen=True)
class Inputs:
    """Everything the result of a part depends on; the part is run again when one of them has changed.

    `recipes` are fingerprints by recipe, `after` the digests of the inputs of the parts whose results it uses.
    """

    version: int
    config: Document
    recipes: Mapping[str, str]
    libraries: Mapping[str, str]
    after: Mapping[str, str | None]

    @staticmethod
    def collect(part: Part, config: Any, folder: Path | None) -> "Inputs":
        """The inputs of a part with these options, whose predecessors may have results in the folder."""
        preset = part.recipe_preset or config.preset
        results = {name: _read_result(folder, name) for name in part.after}
        return Inputs(
            version=part.version,
            config=dataclasses.asdict(config),
            recipes={name: recipe.fingerprint(recipe.load(name, preset=preset)) for name in part.recipes},
            libraries={name: value for name, value in environment().items() if name not in NOT_INPUTS},
            after={name: None if result is None else result.get("inputs") for name, result in results.items()},
        )

    def digest(self) -> str:
        """The first 16 characters of the SHA-256 of the inputs as JSON."""
        content = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        text = json.dumps(content, sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Reproduction(msgspec.Struct, frozen=True):
    """The claims of all that a folder holds, how many have each verdict, and the path of the page."""

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
    """Run one part and return its document; with a folder, write the document, the figures and the runs there.

    A part that is finished in the folder is skipped unless its inputs have changed or `again` is set. Its files are
    then compared with the digests recorded when it finished: missing figures are drawn, and `warn` is called with one
    line per file that is missing or changed. Runs within a part have inputs of their own: trained networks are reused.
    Raises InputError if there is no such part, or if another process runs it in the same folder.
    """
    part = find_part(name)
    config = part.module.Config(preset=preset, changes=changes or {})
    if folder is None:
        return _run_part(name, config, None, Inputs.collect(part, config, None).digest(), tell, warn)
    with _hold_folder(folder, name) as own:
        inputs = Inputs.collect(part, config, folder).digest()
        done = None if again else _read_result(folder, name)
        if done is not None and done.get("inputs") == inputs:
            _check_outputs(part, done, own, warn)
            return done
        result = _run_part(name, config, own, inputs, tell, warn)
        with explain_failure(own):
            (own / OUTPUTS).unlink(missing_ok=True)  # the digests of the files that are now replaced
        write_document(own / f"{name}.json", name, VERSION, result)
        _record_outputs(own, [own / f"{name}.json", *_draw_figures(part, result, own)])
    return result


def find_part(name: str) -> Part:
    """The part of this name; InputError if there is none."""
    if name not in PARTS:
        raise InputError(f"there is no part {name!r} of the paper; choose from {', '.join(PARTS)}")
    return PARTS[name]


def read_documents(folder: Path) -> dict[str, Document]:
    """The documents of the parts in a folder by name: NAME/NAME.json as runs write it, or NAME.json."""
    documents: dict[str, Document] = {}
    for name in PARTS:
        for path in (folder / name / f"{name}.json", folder / f"{name}.json"):
            if path.exists():
                documents[name] = read_document(path, name, VERSION)
                break
    return documents


def write_reproduction(folder: Path, *, command: str = "") -> Reproduction:
    """Write index.html, claims.json and claims.csv of all results in a folder; return the claims."""
    documents = read_documents(folder)
    claims = judge_claims(documents, carried=read_carried(folder))
    counts = count_verdicts(claims)
    rows = [msgspec.to_builtins(claim) for claim in claims]
    page = reproduction_page(
        [_make_section(name, document) for name, document in documents.items()],
        rows,
        counts,
        formulas=[Formula(title, said, find(name)) for name, (title, said) in FORMULAS.items()],
        table=format_csv(claims),
        missing=[name for name in PARTS if name not in documents],
        command=command,
    )
    write_document(folder / "claims.json", "claims", 1, {"counts": counts, "claims": rows})
    write_text(folder / "claims.csv", format_csv(claims))
    write_text(folder / "index.html", page)
    return Reproduction(counts, claims, str(folder / "index.html"))


def _make_section(name: str, document: Document) -> Section:
    part = PARTS[name]
    result = part.read(document)
    return section(
        name,
        document,
        place=part.section,
        summary=part.summary,
        methods=part.methods,
        figures={title: (each.draw(result), each.caption, each.keys) for title, each in part.figures.items()},
        table=None if part.table is None else part.table(result),
    )


def _read_result(folder: Path | None, name: str) -> Document | None:
    """The document of a part in the folder; None if there is none, or it is damaged or of a newer version."""
    if folder is None or not (path := folder / name / f"{name}.json").exists():
        return None
    try:
        return read_document(path, name, VERSION)
    except DocumentError as error:
        if isinstance(error.__cause__, OSError):
            raise StorageError(str(error)) from error
        return None


def _run_part(name: str, config: Any, own: Path | None, inputs: str, tell: Progress, warn: Warn) -> Document:
    """Run a part; its document begins with the same two fields as when it is read from a file."""
    start = time.perf_counter()
    result = PARTS[name].run(config, own, tell, warn)
    head = {"format": f"fluxforge-{name}", "format_version": VERSION}
    took = round(time.perf_counter() - start, 1)
    return {**head, **result, "preset": config.preset, "inputs": inputs, "took_s": took}


@contextmanager
def _hold_folder(folder: Path, name: str) -> Iterator[Path]:
    """Create and lock the part's own folder, and remove temporary files of killed processes."""
    own = folder / name
    with explain_failure(own):
        own.mkdir(parents=True, exist_ok=True)
    with lock_folder(own, LOCK), hold_folder(own):
        remove_strays(own)
        remove_strays(folder, seconds=AN_HOUR)
        yield own


def _record_outputs(own: Path, paths: Iterable[Path], others: Mapping[str, str] | None = None) -> None:
    """Record the digests of files; `others` keep the digest given, so that a changed file stays a changed one."""
    write_document(own / OUTPUTS, "outputs", 1, {"files": {**digest_files(own, paths), **(others or {})}})


def _check_outputs(part: Part, result: Document, own: Path, warn: Warn) -> None:
    """Compare the files of a finished part with their record; draw missing figures, warn of what is changed."""
    recorded = (own / OUTPUTS).exists()
    document = read_document(own / OUTPUTS, "outputs", 1) if recorded else {"files": {}}
    record = read_digests(document.get("files"), own / OUTPUTS)
    changed = find_altered(own, record).changed
    for name in changed:
        remedy = "remove it to have it drawn again" if Path(name).stem in part.figures else "--again replaces it"
        warn(f"{own / name}: has changed since the part was run (its SHA-256 differs); {remedy}")
    missing = [path for path in _figure_paths(part, own) if not path.exists()]
    if recorded and not missing:
        return
    _draw_figures(part, result, own, missing)
    for path in missing:
        warn(f"{path}: was missing and is drawn again")
    # Without a record, a process was killed before it wrote one, or an earlier version finished the part.
    _record_outputs(
        own, [own / f"{own.name}.json", *_figure_paths(part, own)], {name: record[name] for name in changed}
    )


def _figure_paths(part: Part, folder: Path) -> list[Path]:
    return [folder / f"{title}.{suffix}" for title in part.figures for suffix in ("png", "svg")]


def _draw_figures(part: Part, document: Document, folder: Path, wanted: Collection[Path] | None = None) -> list[Path]:
    """Draw the part's figures, all or those wanted; return their paths."""
    paths = [path for path in _figure_paths(part, folder) if wanted is None or path in wanted]
    result = part.read(document)
    for title, drawn in part.figures.items():
        if own := [path for path in paths if path.stem == title]:
            figure = drawn.draw(result)
            for path in own:
                save_figure(figure, path)
    return paths
