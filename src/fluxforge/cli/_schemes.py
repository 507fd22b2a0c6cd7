"""`fluxforge schemes`: the built-in schemes and what each claims."""

from typing import Annotated

import typer

from fluxforge.cli._arguments import Json, complete_scheme


def schemes(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[SCHEME]", help="Built-in name or scheme.json.", autocompletion=complete_scheme),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the built-in schemes and what each claims; with a name, show its formulas."""
    from fluxforge.cli._scheme_text import record, show_list, show_scheme
    from fluxforge.scheme import find, reference

    chosen = list(reference.BUILT_IN.values()) if name is None else [find(name)]
    if as_json:
        from fluxforge.cli._output import show_json

        show_json(record(chosen[0]) if name is not None else {"schemes": [record(scheme) for scheme in chosen]})
    elif name is None:
        show_list(chosen)
    else:
        show_scheme(chosen[0])
