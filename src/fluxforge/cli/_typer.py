"""Typer's groups and commands, with three habits mended."""

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

F = TypeVar("F", bound=Callable[..., Any])
ORDER = ("discover", "verify", "simulate", "schemes", "mesh", "export", "reproduce", "bench", "doctor")


class Command(TyperCommand):
    """A command whose help shows no type for switches, which take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, switches without a type."""
        return _without_types(super().get_params(ctx))


class Group(TyperGroup):
    """A group that lists its commands by use rather than groups last, and shows its help where none is given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Help is an answer, not an error."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, switches without a type."""
        return _without_types(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in our order, then the others in theirs."""
        names = super().list_commands(ctx)
        return [*(name for name in ORDER if name in names), *(name for name in names if name not in ORDER)]


def group(*, text: str, example: str, **more: Any) -> typer.Typer:
    """A group of commands whose help ends with an example."""
    return typer.Typer(
        cls=Group,
        help=text,
        epilog=f"Example: {example}",
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        **more,
    )


def command(parent: typer.Typer, example: str) -> Callable[[F], F]:
    """Decorator: a command of the group, whose help ends with an example."""
    return parent.command(cls=Command, epilog=f"Example: {example}")


def _without_types(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters
