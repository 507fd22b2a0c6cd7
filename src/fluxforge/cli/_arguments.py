"""Arguments that several commands share."""

import os
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

# Copies of names the library holds, because a shell that completes a word cannot wait for the library; tests compare.
SCHEMES = (
    "euler",
    "midpoint",
    "midpoint-printed",
    "rk4",
    "rkl2-8",
    "two-hop",
    "two-hop-printed",
    "crank-nicolson",
    "crank-nicolson-printed",
    "corrected",
)
LARGEST = 10**15
BOUNDARY = (
    "0, left=sin(pi*y), right=insulated or top=flux:2*x (outward normal gradient); may be repeated. "
    "T = 0 where nothing is said."
)


class Kind(StrEnum):
    """Kinds of generated meshes."""

    REGULAR = "regular"
    IRREGULAR = "irregular"


class Engine(StrEnum):
    """Mesh generators."""

    AUTO = "auto"
    GMSH = "gmsh"
    BUILTIN = "builtin"


class Family(StrEnum):
    """Structured families of meshes."""

    SQUARES = "squares"
    RIGHT = "right"
    CROSS = "cross"
    EQUILATERAL = "equilateral"
    JITTERED = "jittered"
    TWO_CELLS = "two-cells"


def whole_number(text: str | int) -> int:
    """A whole number, also written 1e6 or 1_000_000."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    # The size comes first: the integer of 1e999999999 would fill the memory.
    if not (value.is_finite() and value.copy_abs() <= LARGEST and value == int(value)):
        raise typer.BadParameter(f"{str(text)!r:.60} is not a whole number (write 20, or 1e6)")
    return int(value)


def complete_scheme(incomplete: str) -> list[str]:
    """Built-in names that begin like this."""
    return [name for name in SCHEMES if name.startswith(incomplete)]


def complete_schemes(incomplete: str) -> list[str]:
    """The same for the last of several names between commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_scheme(last)]


def writable(path: Path | None) -> Path | None:
    """Refuse before the work what could not be written after it."""
    if path is None:
        return None
    there = next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())
    if there != path.absolute() and not there.is_dir():
        raise typer.BadParameter(f"{path}: {there} is a file, not a folder")
    if not os.access(there, os.W_OK):
        raise typer.BadParameter(f"{path}: there is no permission to write in {there}")
    return path


def _file(path: Path | None) -> Path | None:
    if path is not None and path.is_dir():
        raise typer.BadParameter(f"{path}: is a folder; give the name of a file")
    return writable(path)


def folder(path: Path | None) -> Path | None:
    if path is not None and path.exists() and not path.is_dir():
        raise typer.BadParameter(f"{path}: is a file; give the name of a folder")
    return writable(path)


def count(*names: str, text: str, **more: object) -> typer.models.OptionInfo:
    """An option that takes a whole number."""
    option: Callable[..., typer.models.OptionInfo] = typer.Option
    return option(*names, help=text, parser=whole_number, metavar="N", **more)


SchemeName = Annotated[
    str, typer.Argument(metavar="SCHEME", help="Built-in name or scheme.json.", autocompletion=complete_scheme)
]
EquationName = Annotated[
    str | None,
    typer.Option(
        "--equation",
        metavar="NAME|FILE",
        help="Equation the scheme is to serve: a built-in name or a .toml file (its own, heat, unless given).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="PICTURE", help="Also draw it (.png, .pdf, .svg).", callback=_file)
]
OutputFile = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="File to write.", callback=_file)
]
OutputFolder = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FOLDER", help="Folder to write to.", callback=folder, rich_help_panel="Output"
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace what an earlier run left there.", rich_help_panel="Output")
]
