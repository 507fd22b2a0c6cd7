"""One part after the other, each in a folder of its own, none twice."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fluxforge._files import read_document, write_document
from fluxforge.discover import Progress, silent
from fluxforge.errors import InputError
from fluxforge.mesh import save_figure
from fluxforge.reproduction._inputs import digest, finished, inputs
from fluxforge.reproduction._part import Part, Warn
from fluxforge.reproduction._parts import PARTS


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

    A part that is finished there is not repeated unless its inputs have changed, or `again` is asked for. Runs within
    a part have inputs of their own: a network that is trained stays trained.
    """
    part = named(name)
    changes = changes or {}
    wanted = digest(inputs(part, preset, changes, folder))
    if not again and (done := finished(folder, name, wanted)) is not None:
        _draw_missing(part, done, folder and folder / name)
        return done
    began = time.perf_counter()
    own = None if folder is None else folder / name
    result = part.run(preset, changes, own, tell, warn)
    result |= {"preset": preset, "inputs": wanted, "took_s": round(time.perf_counter() - began, 1)}
    if own is not None:
        write_document(own / f"{name}.json", name, 1, result)
        _draw(part, result, own)
    return result


def named(name: str) -> Part:
    """A part by its name."""
    if name not in PARTS:
        raise InputError(f"there is no part {name!r} of the paper; choose from {', '.join(PARTS)}")
    return PARTS[name]


def documents(folder: Path) -> dict[str, dict[str, Any]]:
    """What there is of the paper in a folder: NAME/NAME.json, or NAME.json, as `results` has them."""
    found = {}
    for name in PARTS:
        for path in (folder / name / f"{name}.json", folder / f"{name}.json"):
            if path.exists():
                found[name] = read_document(path, name, 1)
                break
    return found


def _draw_missing(part: Part, result: Mapping[str, Any], folder: Path | None) -> None:
    if folder is not None and not all((folder / f"{title}.png").exists() for title in part.figures):
        _draw(part, result, folder)


def _draw(part: Part, result: Mapping[str, Any], folder: Path) -> None:
    for title, drawn in part.figures.items():
        figure = drawn.draw(result)
        for suffix in ("png", "svg"):
            save_figure(figure, folder / f"{title}.{suffix}")
