"""Typer's groups and commands, with two habits mended."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

ORDER = ("discover", "simulate", "schemes", "mesh", "export", "bench", "doctor")


class Command(TyperCommand):
    """A command whose help shows no type for switches, which take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, switches without a type."""
        return _without_types(super().get_params(ctx))


class Group(TyperGroup):
    """A group that lists its commands by use rather than groups last."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, switches without a type."""
        return _without_types(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in our order, then the others in theirs."""
        names = super().list_commands(ctx)
        return [*(name for name in ORDER if name in names), *(name for name in names if name not in ORDER)]


def group(*, text: str, example: str, **more: Any) -> typer.Typer:
    """A group of commands whose help ends with an example, and is shown where no command is given."""
    made = typer.Typer(
        cls=Group,
        help=text,
        epilog=f"Example: {example}",
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        invoke_without_command=True,
        **more,
    )
    made.callback()(show_help)
    return made


def show_help(context: typer.Context) -> None:
    """Print the help of a group that was called without a command."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def command(parent: typer.Typer, example: str, **more: Any) -> Any:
    """Decorator: a command of the group, whose help ends with an example."""
    return parent.command(cls=Command, epilog=f"Example: {example}", **more)


def _without_types(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters
