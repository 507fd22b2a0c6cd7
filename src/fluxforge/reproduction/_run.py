"""What a part's result depends on, so that it is repeated when that has changed and not otherwise."""

import dataclasses
import hashlib
import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fluxforge import recipe
from fluxforge._files import hold_folder, read_document, write_document
from fluxforge.discover import Progress, environment, silent
from fluxforge.errors import DocumentError, InputError, StorageError
from fluxforge.mesh import save_figure
from fluxforge.reproduction._parts import PARTS, Part, Warn
from fluxforge.run import altered, digests, exclusive, explained, read_record, remove_strays

# Of the environment, what does not change a result.
NOT_INPUTS = frozenset({"platform", "system"})


def collect_inputs(part: Part, preset: str, changes: Mapping[str, Any], folder: Path | None) -> dict[str, Any]:
    """The part's version, its options, its recipes as they stand, the libraries, and the results it builds on."""
    config = dataclasses.asdict(part.module.Config(preset=preset, changes=changes))
    libraries = {name: value for name, value in environment().items() if name not in NOT_INPUTS}
    return {
        "version": part.version,
        "config": config,
        "recipes": {
            name: recipe.fingerprint(recipe.load(name, preset=part.recipe_preset or preset)) for name in part.recipes
        },
        "libraries": libraries,
        "after": {name: _digest_in(folder, name) for name in part.after},
    }


def digest_inputs(found: Mapping[str, Any]) -> str:
    """A short SHA-256 of inputs."""
    text = json.dumps(found, sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_finished(folder: Path | None, name: str, wanted: str) -> dict[str, Any] | None:
    """The document of a part that was made from the same inputs; None if there is none, or it cannot be read."""
    document = _read_result(folder, name)
    return document if document is not None and document.get("inputs") == wanted else None


def _digest_in(folder: Path | None, name: str) -> str | None:
    document = _read_result(folder, name)
    return None if document is None else document.get("inputs")


def _read_result(folder: Path | None, name: str) -> dict[str, Any] | None:
    if folder is None or not (path := folder / name / f"{name}.json").exists():
        return None
    try:
        return read_document(path, name, 1)
    except DocumentError as error:
        if isinstance(error.__cause__, OSError):
            raise StorageError(str(error)) from error
        # Damaged or newer: it is made again, over it.
        return None


# The record of a part's files, and the lock that one process at a time holds while it runs the part.
OUTPUTS, LOCK = "outputs.json", "part.lock"
# What a killed process left beside the parts is removed after so long: other parts may be written there now.
AN_HOUR = 3600.0


def reproduce(
    name: str,
    *,
    preset: str = "quick",
    changes: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    again: bool = False,
    tell: Progress = silent,
    warn: Warn = lambda _: None,
) -> dict[str, Any]:
    """Run one part; with a folder, leave its document, its figures and its runs there, and go on from them.

    A part that is finished there is not repeated unless its inputs have changed, or `again` is asked for: its files are
    compared with the digests recorded when it finished, figures that are missing are drawn, and `warn` is told of what
    was missing or is changed. Runs within a part have inputs of their own: a network that is trained stays trained.
    Raises InputError if another process runs the part in the same folder.
    """
    part = find_part(name)
    changes = changes or {}
    if folder is None:
        return _run_part(part, preset, changes, None, collect_inputs(part, preset, changes, None), tell, warn)
    with _hold_folder(folder, name) as own:
        wanted = collect_inputs(part, preset, changes, folder)
        if not again and (done := read_finished(folder, name, digest_inputs(wanted))) is not None:
            _check_outputs(part, done, own, warn)
            return done
        result = _run_part(part, preset, changes, own, wanted, tell, warn)
        with explained(own):
            (own / OUTPUTS).unlink(missing_ok=True)  # the record of what is now written over
        write_document(own / f"{name}.json", name, 1, result)
        _record_outputs(own, [own / f"{name}.json", *_draw_figures(part, result, own)])
    return result


def _run_part(
    part: Part,
    preset: str,
    changes: Mapping[str, Any],
    own: Path | None,
    wanted: Mapping[str, Any],
    tell: Progress,
    warn: Warn,
) -> dict[str, Any]:
    began = time.perf_counter()
    result = part.module.run(part.module.Config(preset=preset, changes=changes), own, tell, warn)
    return result | {"preset": preset, "inputs": digest_inputs(wanted), "took_s": round(time.perf_counter() - began, 1)}


@contextmanager
def _hold_folder(folder: Path, name: str) -> Iterator[Path]:
    """The part's own folder, made if need be, held by this process alone; what killed processes left is removed."""
    own = folder / name
    with explained(own):
        own.mkdir(parents=True, exist_ok=True)
    with exclusive(own, LOCK), hold_folder(own):
        remove_strays(own)
        remove_strays(folder, seconds=AN_HOUR)
        yield own


def find_part(name: str) -> Part:
    """A part by its name."""
    if name not in PARTS:
        raise InputError(f"there is no part {name!r} of the paper; choose from {', '.join(PARTS)}")
    return PARTS[name]


def read_documents(folder: Path) -> dict[str, dict[str, Any]]:
    """What there is of the paper in a folder: NAME/NAME.json, or NAME.json, as `results` has them."""
    found = {}
    for name in PARTS:
        for path in (folder / name / f"{name}.json", folder / f"{name}.json"):
            if path.exists():
                found[name] = read_document(path, name, 1)
                break
    return found


def _record_outputs(own: Path, paths: Iterable[Path], others: Mapping[str, str] | None = None) -> None:
    """Record digests; `others` are recorded as they were before: what was changed since stays changed."""
    write_document(own / OUTPUTS, "outputs", 1, {"files": {**digests(own, paths), **(others or {})}})


def _check_outputs(part: Part, result: Mapping[str, Any], own: Path, warn: Warn) -> None:
    """Compare a finished part's files with their record; draw figures that are missing, tell of what is changed."""
    recorded = (own / OUTPUTS).exists()
    document = read_document(own / OUTPUTS, "outputs", 1) if recorded else {"files": {}}
    record = read_record(document.get("files"), own / OUTPUTS)
    found = altered(own, record)
    for name in found.changed:
        made = "remove it to have it drawn again" if Path(name).stem in part.figures else "--again makes it anew"
        warn(f"{own / name}: is not as the part left it (its SHA-256 is another one); {made}")
    missing = [path for path in _figure_paths(part, own) if not path.exists()]
    if recorded and not missing:
        return
    _draw_figures(part, result, own, missing)
    for path in missing:
        warn(f"{path}: was missing and is drawn again")
    # Without a record, a process was killed before it wrote one, or an earlier version finished the part.
    _record_outputs(
        own, [own / f"{own.name}.json", *_figure_paths(part, own)], {name: record[name] for name in found.changed}
    )


def _figure_paths(part: Part, folder: Path) -> list[Path]:
    return [folder / f"{title}.{suffix}" for title in part.figures for suffix in ("png", "svg")]


def _draw_figures(
    part: Part, result: Mapping[str, Any], folder: Path, wanted: Collection[Path] | None = None
) -> list[Path]:
    """Draw the part's figures, all or those wanted; return their paths."""
    paths = [path for path in _figure_paths(part, folder) if wanted is None or path in wanted]
    for title, drawn in part.figures.items():
        if own := [path for path in paths if path.stem == title]:
            figure = drawn.draw(result)
            for path in own:
                save_figure(figure, path)
    return paths
