"""Groups and commands with our layout of help texts, and arguments that several commands share."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

F = TypeVar("F", bound=Callable[..., Any])
ORDER = (
    "discover",
    "sweep",
    "verify",
    "simulate",
    "rerun",
    "equations",
    "schemes",
    "mesh",
    "export",
    "reproduce",
    "bench",
    "doctor",
)


class Command(TyperCommand):
    """A command whose help shows a placeholder or a type, not both, and neither for switches."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, prepared for the help text."""
        return _prepare_help(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line, without Typer's braces around required arguments."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class Group(TyperGroup):
    """A group that lists its commands in a fixed order, and prints its help if no command is given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Print the help, with exit code 0, if there are no arguments."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, prepared for the help text."""
        return _prepare_help(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """Command names in the order of ORDER, then any others."""
        names = super().list_commands(ctx)
        return [*(name for name in ORDER if name in names), *(name for name in names if name not in ORDER)]


def group(text: str, *examples: str, **more: Any) -> typer.Typer:
    """Create a group of commands whose help ends with examples."""
    return typer.Typer(
        cls=Group,
        help=text,
        epilog=_format_examples(examples),
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        **more,
    )


def command(parent: typer.Typer, *examples: str) -> Callable[[F], F]:
    """Decorator that adds a command to a group; its help is the function's docstring, and ends with examples."""

    def add(function: F) -> F:
        # Typer would keep the line breaks of the docstring, which do not fit the width of the terminal.
        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        return parent.command(cls=Command, help=text, epilog=_format_examples(examples))(function)

    return add


def _format_examples(examples: Sequence[str]) -> str:
    """The end of a help text: a heading and one paragraph per example, since Typer prints a paragraph as one line."""
    return "\n\n".join([EXAMPLES, *examples])


def _prepare_help(parameters: list[Any]) -> list[Any]:
    """Hide the type of switches and of positional arguments with a placeholder, where Typer would show <list[str]>."""
    for parameter in parameters:
        if parameter.param_type_name == "argument" and parameter.metavar is not None:
            parameter.display_type_rich = lambda ctx: None
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


# Copies of names in the library, since importing it is too slow for shell completion; a test compares them.
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
RECIPES = (
    "first-order",
    "first-order-direct",
    "first-order-pinn",
    "generalisation",
    "midpoint",
    "two-hop",
    "conductance",
    "upwind",
    "exponential",
    "godunov",
    "carry",
    "stages",
    "limiter",
    "limiter-downwind",
    "skew",
)
EQUATIONS = (
    "heat",
    "conduction",
    "anisotropic",
    "advection",
    "advection-diffusion",
    "burgers",
    "traffic",
    "reaction-diffusion",
    "allen-cahn",
)
LARGEST_COUNT = 10**15
EXAMPLES = "Examples:"
BOUNDARY = (
    'Boundary conditions, separated by commas: "left=1, right=neumann:0, top=robin:H:T, rest=insulated". Each '
    "is TAG=CONDITION with a boundary tag of the mesh, or rest for all tags that are not named; CONDITION alone means "
    "rest=CONDITION. Conditions: a value u = g; neumann:Q for ∂u/∂n = Q, n outward; insulated for ∂u/∂n = 0; "
    "robin:H:T for "
    "−K ∂u/∂n = H (u − T); periodic:TAG; inflow:VALUE, the value where the flow enters (inflow alone: 0). Values are "
    "formulas of x, y and t. Default: u = 0, or inflow with free outflow if the equation has a velocity. May be "
    "repeated."
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


@dataclass(frozen=True)
class Output:
    """The output of a simulation: a folder, or None for no files, and one JSON document or text."""

    folder: Path | None
    overwrite: bool
    gif: bool
    as_json: bool


@dataclass(frozen=True)
class Times:
    """The time steps of a simulation, with the names of the arguments of `fluxforge.simulate`; None for its default."""

    dt: float | Literal["auto"] | None
    steps: int | None
    end_time: float | None
    save_every: float | None


def refuse_if(clashes: Mapping[str, object]) -> None:
    """Raise BadParameter with the first message of `clashes` whose condition is true."""
    for message, holds in clashes.items():
        if holds:
            raise typer.BadParameter(message)


def parse_whole(text: str | int) -> int:
    """Parse a whole number, also written 1e6 or 1_000_000; BadParameter for anything else."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    # The size is checked first, since int(1e999999999) would fill the memory.
    if not (value.is_finite() and value.copy_abs() <= LARGEST_COUNT and value == int(value)):
        raise typer.BadParameter(f"{str(text)!r:.60} is not a whole number (write 20, or 1e6)")
    return int(value)


def complete_one(names: Sequence[str]) -> Callable[[str], list[str]]:
    """A completion function that returns those of `names` that begin with the typed text."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def complete_list(names: Sequence[str]) -> Callable[[str], list[str]]:
    """A completion function for the last of several names separated by commas."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in complete_one(names)(last)]

    return complete


def split_names(text: str) -> tuple[str, ...]:
    """The names in a text, separated by commas; white space and empty names are dropped."""
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def check_writable(path: Path | None) -> Path | None:
    """Return a path that can be written, or raise BadParameter: a callback of options, so before any work."""
    if path is None:
        return None
    there = next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())
    if there != path.absolute() and not there.is_dir():
        raise typer.BadParameter(f"{path}: {there} is a file, not a folder")
    if not os.access(there, os.W_OK):
        raise typer.BadParameter(f"{path}: no permission to write in {there}")
    return path


def _check_file(path: Path | None) -> Path | None:
    if path is not None and path.is_dir():
        raise typer.BadParameter(f"{path}: is a folder; give the name of a file")
    return check_writable(path)


def check_folder(path: Path | None) -> Path | None:
    """Return the path of a folder, existing or new, that can be written, or raise BadParameter."""
    if path is not None and path.exists() and not path.is_dir():
        raise typer.BadParameter(f"{path}: is a file; give the name of a folder")
    return check_writable(path)


def count(*names: str, text: str, **more: object) -> typer.models.OptionInfo:
    """Create an option that takes a whole number."""
    option: Callable[..., typer.models.OptionInfo] = typer.Option
    return option(*names, help=text, parser=parse_whole, metavar="N", **more)


def choice(names: type[StrEnum], text: str, **more: object) -> typer.models.OptionInfo:
    """Create an option that takes one of some names; the help shows them as a|b, where Typer would show <a|b>."""
    option: Callable[..., typer.models.OptionInfo] = typer.Option
    return option(metavar="|".join(names), help=text, **more)


def scheme_argument(text: str = "Name of a built-in scheme, or a scheme.json file.") -> typer.models.ArgumentInfo:
    """Create the argument that takes a scheme."""
    info: typer.models.ArgumentInfo = typer.Argument(metavar="SCHEME", help=text, autocompletion=complete_one(SCHEMES))
    return info


SchemeName = Annotated[str, scheme_argument()]
RecipeName = Annotated[
    str | None,
    typer.Argument(
        metavar="RECIPE",
        help=f"{', '.join(RECIPES)}, or a TOML file (default: first-order).",
        autocompletion=complete_one(RECIPES),
    ),
]
Preset = Annotated[
    str | None, typer.Option(metavar="quick|paper", help="Problem sizes: quick (default), or those of the paper.")
]
EquationName = Annotated[
    str | None,
    typer.Option(
        "--equation",
        metavar="NAME|FILE",
        help="Equation to solve: a built-in name or a .toml file (default: that of the scheme, or heat).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot", metavar="PICTURE", help="Draw the mesh to this file (.png, .pdf, .svg).", callback=_check_file
    ),
]
OutputFile = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="File to write.", callback=_check_file)
]
OutputFolder = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FOLDER", help="Folder to write to.", callback=check_folder, rich_help_panel="Output"
    ),
]
Gif = Annotated[bool, typer.Option("--gif", help="Also write an animation.", rich_help_panel="Output")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing output.", rich_help_panel="Output")]
