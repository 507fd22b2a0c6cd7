"""Pages written by the package itself.

`{facade}` is the table of `import fluxforge as ff`, `{api} PACKAGE` lists what a package exports, `{commands}` what the
terminal offers. A page api/PACKAGE.md is written for every public package.
"""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, get_origin

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

import fluxforge
from fluxforge.cli._main import app as command_line

_CODE = re.compile(r"(`[^`]*`)")
_MARKS = re.compile(r"([*|\\]|_(?!\w))")
_MODULE = re.compile(r"\b(?:\w+\.)+(?=\w)")
_TYPE = re.compile(r"<[a-z]+(\[[a-z]+\])?>")


def packages() -> list[str]:
    """The packages that say what they export, but for private ones and those that lend their name to a function."""
    found = [module.name for module in walk_packages(fluxforge.__path__, "fluxforge.") if module.ispkg]
    public = [name for name in found if "._" not in name and hasattr(import_module(name), "__all__")]
    return [name for name in public if name.count(".") == 1 or not _is_function(*name.rsplit(".", 1))]


def _is_function(parent: str, name: str) -> bool:
    return inspect.isroutine(getattr(import_module(parent), name, None))


def _write_pages(app: Sphinx, config: Config) -> None:
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    wanted = {folder / f"{name}.md": f"# {name}\n\n```{{api}} {name}\n```\n" for name in packages()}
    for stale in set(folder.glob("*.md")) - set(wanted):
        stale.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


class Facade(SphinxDirective):
    """```{facade}: the names of `fluxforge.__all__`, where each lives, and what it is."""

    def run(self) -> list[nodes.Node]:
        """A row per name."""
        rows = [_facade_row(name, getattr(fluxforge, name)) for name in sorted(fluxforge.__all__, key=str.lower)]
        return self.parse_text_to_nodes("\n".join(["| name | what it is |", "| --- | --- |", *rows]))


def _facade_row(name: str, thing: Any) -> str:
    if isinstance(thing, ModuleType):
        link, text = f"{{py:mod}}`{thing.__name__}`", thing.__doc__
    elif home := fluxforge._HOME.get(name):
        link, text = f"{{py:obj}}`fluxforge.{home}.{name}`", inspect.getdoc(thing)
    else:
        return f"| `ff.{name}` | the version, a text |"
    return f"| `ff.{name}` | {_plain((text or '').split(chr(10))[0])} {link} |"


class Api(SphinxDirective):
    """```{api} PACKAGE: a table of the names in its `__all__`, then each with its docstring."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A row per name, and autodoc of each. Autosummary would make every signature once more to show none."""
        package = self.arguments[0]
        names = sorted(import_module(package).__all__, key=str.lower)
        rows = [_summary_row(package, name, getattr(import_module(package), name)) for name in names]
        lines = [f".. automodule:: {package}", "", "```", "", "| name | what it is |", "| --- | --- |", *rows, ""]
        lines += ["```{eval-rst}", f".. currentmodule:: {package}", ""]
        for name in names:
            thing = getattr(import_module(package), name)
            # A package within the package has a page of its own.
            kind, *options = ("py:data", "   :no-index:") if isinstance(thing, ModuleType) else _kind(thing)
            lines += [f".. {kind}:: {name}", *options, ""]
        return self.parse_text_to_nodes("\n".join(["```{eval-rst}", *lines, "```"]))


def _summary_row(package: str, name: str, thing: Any) -> str:
    """A link to where the name is documented, and the first line of its docstring."""
    text = "" if get_origin(thing) is not None or thing.__doc__ == type(thing).__doc__ else inspect.getdoc(thing) or ""
    return f"| {{py:obj}}`~{package}.{name}` | {_plain(text.split(chr(10))[0])} |"


def _kind(thing: Any) -> tuple[str, ...]:
    """The directive that documents it, and its options."""
    if isinstance(thing, type) and get_origin(thing) is None:
        return "autoclass", "   :members:"
    return ("autofunction",) if inspect.isroutine(thing) else ("autodata", "   :no-value:")


def _as_rst(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with `code` in it: |d|, T* and x_ mean themselves. Aliases say what they stand for."""
    if get_origin(thing) is not None:
        lines[:] = [f"`{_MODULE.sub('', str(thing))}`"]
    elif what == "data" and thing.__doc__ == type(thing).__doc__:
        lines.clear()
    parts = _CODE.split("\n".join(lines))
    parts[::2] = [_MARKS.sub(r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f"`{part}`" for part in parts[1::2]]
    lines[:] = "".join(parts).split("\n")


class Commands(SphinxDirective):
    """```{commands}: every command with the words of its `--help`."""

    def run(self) -> list[nodes.Node]:
        """A section per command, groups and their commands alike."""
        text = "\n".join(_pages(typer.main.get_command(command_line), "fluxforge"))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _pages(command: Any, path: str) -> Iterator[str]:
    context = command.make_context(path, [], resilient_parsing=True)
    yield f"## {path}\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{path} {usage}\n```\n"
    yield f"{_plain(command.help)}\n"
    if rows := [row for parameter in command.get_params(context) if (row := _row(parameter, context))]:
        yield "\n".join(["| | |", "| --- | --- |", *rows]) + "\n"
    if examples := (command.epilog or "").split("\n\n")[1:]:
        yield "\n".join(["```console", *(f"$ {example}" for example in examples), "```\n"])
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from _pages(command.get_command(context, name), f"{path} {name}")


def _row(parameter: Any, context: Any) -> str | None:
    """`--option VALUE | what it does`, as the help says it; what every command has is left out."""
    if parameter.name in ("help", "install_completion", "show_completion"):
        return None
    given = parameter.get_help_record(context)
    words, text = given if given is not None else (parameter.make_metavar(context), parameter.help or "")
    shown = _TYPE.sub("", words).strip().replace("|", r"\|")
    return f"| `{shown}` | {_plain(text)} |"


def _plain(text: str | None) -> str:
    """One paragraph a line; what Markdown or a table would take for itself is quoted."""
    joined = "\n\n".join(" ".join(part.split()) for part in (text or "").split("\n\n"))
    return joined.replace("|", r"\|").replace("*", r"\*").replace("<", r"\<")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives, and how docstrings are read."""
    app.connect("config-inited", _write_pages)
    app.connect("autodoc-process-docstring", _as_rst)
    app.add_directive("facade", Facade)
    app.add_directive("api", Api)
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
