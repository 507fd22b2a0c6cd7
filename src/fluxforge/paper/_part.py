"""A part of the paper: its study, figures and texts, and its run in a subfolder of the reproduction.

A part that was finished in the folder with the same inputs is read instead of run.
"""

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, runtime_checkable

from matplotlib.figure import Figure
from msgspec import Struct, toml

from fluxforge import recipe
from fluxforge._files import hold_folder, read_document, write_document
from fluxforge._machine import environment
from fluxforge.errors import DocumentError, StorageError
from fluxforge.mesh._picture import save_figure
from fluxforge.paper.studies._records import Claim, StudyConfig, read_result, to_document
from fluxforge.report._tables import Table
from fluxforge.run._durable import digest_files, explain_failure, find_altered, read_digests, remove_strays
from fluxforge.run._folder import lock_folder
from fluxforge.run._progress import Progress, Warn
from fluxforge.run._record import Document

# The format version of the documents of parts.
VERSION = 1
# Entries of the environment that are not inputs, since results do not depend on them.
NOT_INPUTS = frozenset({"platform", "system"})
# The files with the digests of a part's outputs, and with the lock of the process that runs the part.
OUTPUTS, LOCK = "outputs.json", "part.lock"
# Age in seconds at which temporary files beside the parts are removed: another process may be writing younger ones.
TEMPORARY_AGE = 3600.0


@runtime_checkable
class Module(Protocol):
    """The interface of the module of a study."""

    @property
    def Config(self) -> Callable[..., StudyConfig]:
        """The class of the study's options."""

    @property
    def Result(self) -> type[Struct]:
        """The class of the record that `run` returns."""

    @property
    def run(self) -> Callable[..., Any]:
        """The function that runs the study: (config, folder, tell, warn) → Result."""

    @property
    def judge(self) -> Callable[[Any], list[Claim]]:
        """The function that judges the paper's claims from a Result."""


class FigureText(Struct, frozen=True, forbid_unknown_fields=True):
    """The caption of a figure, and the keys of the document under which its numbers are."""

    caption: str
    keys: tuple[str, ...]


class PartText(Struct, frozen=True, forbid_unknown_fields=True):
    """The entry of a part in parts.toml.

    `recipes` are those it trains with, at the part's preset unless `recipe_preset` names another; `after` are the parts
    whose results it uses. Both are inputs, as is `version`, which is increased when the same inputs give other numbers.
    """

    section: str
    summary: str
    methods: str
    figures: dict[str, FigureText] = {}
    recipes: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    version: int = 1
    recipe_preset: str | None = None


# The entries by the name of the part, in the paper's order.
PART_TEXTS = toml.decode(files("fluxforge.paper").joinpath("parts.toml").read_bytes(), type=dict[str, PartText])


class Part(PartText, frozen=True, kw_only=True):
    """A part with its study: the module, and functions that draw each figure and make the table from a Result."""

    module: Module
    draw: Mapping[str, Callable[[Any], Figure]]
    table: Callable[[Any], Table] | None = None

    def read(self, document: Document) -> Struct:
        """The Result from a document; raises DocumentError if a field is missing or of another type."""
        return read_result(document, self.module.Result)

    def judge(self, document: Document) -> list[Claim]:
        """The claims, judged again from the Result in a document."""
        return self.module.judge(self.read(document))


def run_part(
    name: str, part: Part, config: StudyConfig, folder: Path | None, *, again: bool, tell: Progress, warn: Warn
) -> Document:
    """Run a part and return its document; if it was finished in the folder with the same inputs, read the document.

    With `again`, a finished part is run again. Without a folder, no files remain. Raises InputError if another process
    runs the part in the same folder.
    """
    if folder is None:
        with TemporaryDirectory() as scratch:
            return _measure(name, part, config, Path(scratch) / name, digest_inputs(part, config, None), tell, warn)
    with _hold_folder(folder, name) as part_folder:
        inputs = digest_inputs(part, config, folder)
        done = None if again else _read_document(folder, name)
        if done is not None and done.get("inputs") == inputs:
            _check_outputs(part, done, part_folder, warn)
            return done
        document = _measure(name, part, config, part_folder, inputs, tell, warn)
        with explain_failure(part_folder):
            (part_folder / OUTPUTS).unlink(missing_ok=True)  # it has the digests of files that are now replaced
        write_document(part_folder / f"{name}.json", name, VERSION, document)
        _record_outputs(part_folder, [part_folder / f"{name}.json", *_draw_figures(part, document, part_folder)])
    return document


def digest_inputs(part: Part, config: StudyConfig, folder: Path | None) -> str:
    """The first 16 characters of the SHA-256 of everything that the result of a part depends on.

    That is the part's version, its options, fingerprints of its recipes, versions of libraries, and the digests of
    the inputs of the parts in the folder whose results it uses.
    """
    preset = part.recipe_preset or config.preset
    used = {name: _read_document(folder, name) for name in part.after}
    inputs = {
        "version": part.version,
        "config": asdict(config),
        "recipes": {name: recipe.fingerprint(recipe.load(name, preset=preset)) for name in part.recipes},
        "libraries": {name: value for name, value in environment().items() if name not in NOT_INPUTS},
        "after": {name: None if document is None else document.get("inputs") for name, document in used.items()},
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, default=list).encode()).hexdigest()[:16]


def _measure(
    name: str, part: Part, config: StudyConfig, part_folder: Path, inputs: str, tell: Progress, warn: Warn
) -> Document:
    """Run the study, judge its claims, and return the document, with the same first two fields as one that is read."""
    start = time.perf_counter()
    result = part.module.run(config, part_folder, tell, warn)
    content = to_document(result, part.module.judge(result))
    head = {"format": f"fluxforge-{name}", "format_version": VERSION}
    took = round(time.perf_counter() - start, 1)
    return {**head, **content, "preset": config.preset, "inputs": inputs, "took_s": took}


def _read_document(folder: Path | None, name: str) -> Document | None:
    """The document of a part in the folder; None if there is none, or it is damaged or of a newer version."""
    if folder is None or not (path := folder / name / f"{name}.json").exists():
        return None
    try:
        return read_document(path, name, VERSION)
    except DocumentError as error:
        if isinstance(error.__cause__, OSError):
            raise StorageError(str(error)) from error
        return None


@contextmanager
def _hold_folder(folder: Path, name: str) -> Iterator[Path]:
    """Create and lock the folder of the part, and remove temporary files of killed processes."""
    part_folder = folder / name
    with explain_failure(part_folder):
        part_folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(part_folder, LOCK), hold_folder(part_folder):
        remove_strays(part_folder)
        remove_strays(folder, seconds=TEMPORARY_AGE)
        yield part_folder


def _record_outputs(part_folder: Path, paths: Iterable[Path], others: Mapping[str, str] | None = None) -> None:
    """Record the digests of files, and the given ones `others` of changed files, which are then reported again."""
    write_document(
        part_folder / OUTPUTS, "outputs", 1, {"files": {**digest_files(part_folder, paths), **(others or {})}}
    )


def _check_outputs(part: Part, document: Document, part_folder: Path, warn: Warn) -> None:
    """Compare the files of a finished part with recorded digests; draw missing figures, and warn of changed files."""
    recorded = (part_folder / OUTPUTS).exists()
    outputs = read_document(part_folder / OUTPUTS, "outputs", 1) if recorded else {"files": {}}
    record = read_digests(outputs.get("files"), part_folder / OUTPUTS)
    changed = find_altered(part_folder, record).changed
    for name in changed:
        remedy = "remove it to have it drawn again" if Path(name).stem in part.figures else "--again replaces it"
        warn(f"{part_folder / name}: has changed since the part was run (its SHA-256 differs); {remedy}")
    missing = [path for path in _figure_paths(part, part_folder) if not path.exists()]
    if recorded and not missing:
        return
    _draw_figures(part, document, part_folder, missing)
    for path in missing:
        warn(f"{path}: was missing and is drawn again")
    # There is no record if a process was killed before it wrote one, or an earlier version finished the part.
    _record_outputs(
        part_folder,
        [part_folder / f"{part_folder.name}.json", *_figure_paths(part, part_folder)],
        {name: record[name] for name in changed},
    )


def _figure_paths(part: Part, folder: Path) -> list[Path]:
    return [folder / f"{title}.{suffix}" for title in part.figures for suffix in ("png", "svg")]


def _draw_figures(part: Part, document: Document, folder: Path, wanted: Collection[Path] | None = None) -> list[Path]:
    """Draw and save the figures of a part, all or those in `wanted`; return their paths."""
    paths = [path for path in _figure_paths(part, folder) if wanted is None or path in wanted]
    result = part.read(document)
    for title, draw in part.draw.items():
        if targets := [path for path in paths if path.stem == title]:
            figure = draw(result)
            for path in targets:
                save_figure(figure, path)
    return paths
