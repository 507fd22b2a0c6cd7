"""A recipe's changes for a small discovery, and the files of a run without what differs from run to run."""

import json
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

# Everything from training to the report.
SMALL = {
    "network.width": 4,
    "network.depth": 1,
    "training.steps": 60,
    "training.batch": 8,
    "training.chunk": 10,
    "training.checkpoint_every": 20,
    "evaluation.meshes": 0,
    "search.samples": 100,
    "search.restarts": 1,
    "search.evaluations": 600,
    "search.most_complex": 9,
    "search.threshold": 1e6,  # any formula passes all stages; it is refused at the end
}
# Times are in these, or in what they are digests of; SVG pictures have random names inside.
DIFFERENT = ("report.html", "stages/outputs.json", "run.json", "*.svg")


def is_timing(name: str) -> bool:
    """Whether a field of a document is a time, or the digest of a file that contains one."""
    return name in ("seconds", "sha256")


def read_files(
    folder: Path, *, without: tuple[str, ...] = DIFFERENT, differs: Callable[[str], bool] = is_timing
) -> dict[str, Any]:
    """Each file by its name: the bytes, or of JSON the document without the fields that differ.

    Files that match a pattern of `without` are left out.
    """
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {
        name: drop_fields(json.loads(path.read_bytes()), differs) if name.endswith(".json") else path.read_bytes()
        for name, path in files.items()
        if not any(fnmatch(name, pattern) for pattern in without)
    }


def drop_fields(value: Any, differs: Callable[[str], bool] = is_timing) -> Any:
    """A document without these fields, at any depth."""
    if isinstance(value, list):
        return [drop_fields(each, differs) for each in value]
    if isinstance(value, dict):
        return {name: drop_fields(each, differs) for name, each in value.items() if not differs(name)}
    return value


def flip_last_bit(path: Path) -> None:
    """Damage a file in the last of its bytes, which in a safetensors file belongs to a number."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
