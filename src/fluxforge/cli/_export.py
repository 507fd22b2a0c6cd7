"""`fluxforge export`: code for a scheme."""

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from fluxforge.cli._arguments import OutputFile, SchemeName
from fluxforge.cli._output import show


class Target(StrEnum):
    """What a scheme can be written as."""

    LATEX = "latex"
    NUMPY = "numpy"
    JAX = "jax"
    C = "c"
    JSON = "json"


def export(
    scheme: SchemeName,
    to: Annotated[Target, typer.Option(help="Language of the result; json is the scheme.json other commands read.")],
    output: OutputFile = None,
) -> None:
    """Write a scheme as LaTeX, NumPy, JAX or C code, or as scheme.json."""
    from fluxforge._files import write_text
    from fluxforge.scheme import find

    code = _code(find(scheme), to)
    if output is None:
        typer.echo(code, nl=False)
        return
    write_text(output, code)
    show(f"wrote {output}")


def _code(scheme: Any, to: Target) -> str:
    from fluxforge.scheme import emit, to_document
    from fluxforge.scheme._document import KIND, VERSION

    if to is Target.JSON:
        document = {"format": f"fluxforge-{KIND}", "format_version": VERSION, **to_document(scheme)}
        return json.dumps(document, indent=2, allow_nan=False) + "\n"
    return emit.emit(scheme, to.value).rstrip("\n") + "\n"
