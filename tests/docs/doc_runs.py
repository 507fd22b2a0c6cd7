"""A page carried out: its Python, commands, recipes and schemes, in order, in one folder."""

import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import typer
from doc_pages import ROOT, Block, blocks, shape

from fluxforge import pde, recipe
from fluxforge.cli import main
from fluxforge.cli._main import app
from fluxforge.scheme import Claims, find, load, save

# What a discovery of a shipped recipe ends with, for pages whose long commands are not run.
TWINS = {
    "first-order": "euler",
    "first-order-direct": "euler",
    "first-order-pinn": "euler",
    "midpoint": "midpoint",
    "two-hop": "two-hop",
}
# The comment of a command that is only parsed, also when its page is run in full.
TOO_LONG = "of processor time"
Read = Callable[[], str]


@dataclass
class Page:
    """What the blocks of a page share: the working folder, the names of its Python, the last whole recipe."""

    path: Path
    read: Read  # what was printed since it was last asked
    in_full: bool
    names: dict[str, Any] = field(default_factory=dict)
    recipe: dict[str, Any] = field(default_factory=dict)
    printed: str = ""

    def run(self) -> None:
        """Every block, by its language."""
        for block in blocks(self.path):
            where = f"{self.path.name}, line {block.line}"
            match block.language:
                case "python":
                    self.printed = self._python(block, where)
                case "console" | "" if block.text.startswith("$ "):
                    self._console(block, where)
                case "" if all(line.startswith("make ") for line in block.text.splitlines()):
                    for line in block.text.splitlines():
                        check_target(line.split()[1], where)
                case "toml":
                    self._toml(block)
                case "json":
                    load(_written(block, where))
                case "c":
                    _written(block, where)
                case "text":
                    if block.follows and self.printed:
                        check_output(block.text.splitlines(), self.printed, where)
                case other:
                    pytest.fail(f"{where}: a block of language {other!r} is neither run nor said to be text")

    def _python(self, block: Block, where: str) -> str:
        self.read()
        # Python of minutes stands below `if __name__ == "__main__"`.
        self.names["__name__"] = "__main__" if self.in_full else "page"
        exec(compile(block.text, where, "exec"), self.names)
        return self.read()

    def _console(self, block: Block, where: str) -> None:
        for part in block.text.replace("\\\n", " ").removeprefix("$ ").split("\n$ "):
            line, *shown = part.rstrip("\n").split("\n")
            words, refused = shlex.split(line, comments=True), any(each.startswith("error:") for each in shown)
            listed = self.path.name == "README.md" and not shown and is_simulation(words)
            left_out = not self.in_full and (is_long(words) or listed) and not refused
            if left_out or line.endswith(TOO_LONG):
                stand_in(words, where)
                continue
            code, printed = self._command(words, where)
            assert (code != 0) == refused, f"{where}: {line}\n{printed}"
            check_output(shown, printed, where)

    def _command(self, words: list[str], where: str) -> tuple[int, str]:
        self.read()
        match words[0]:
            case "fluxforge":
                return main(words[1:]), self.read()
            case "make":
                check_target(words[1], where)
                return 0, ""
            case "python":
                words = [sys.executable, *words[1:]]
            case "cc" if shutil.which("cc") is None:
                pytest.skip("there is no C compiler")
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def _toml(self, block: Block) -> None:
        """An equation, a recipe, or tables that replace those of the recipe above."""
        given = tomllib.loads(block.text)
        if {"diffusion", "transported", "reaction"} & set(given):
            pde.find(_written(block, self.path.name))
        elif "name" in given:
            Path(block.file or "recipe.toml").write_text(block.text, encoding="utf-8")
            recipe.load(block.file or "recipe.toml")
            self.recipe = given
        else:
            recipe.from_dict({**self.recipe, **given}, f"{self.path.name}, line {block.line}")


def takes_minutes(block: Block) -> bool:
    """Whether some of a block is left out unless its page is run in full."""
    lines = [line[2:].split() for line in block.text.splitlines() if line.startswith("$ ")]
    return any(map(is_long, lines)) or 'if __name__ == "__main__":' in block.text


def is_long(words: list[str]) -> bool:
    """Commands of minutes."""
    certify = words[:2] == ["fluxforge", "verify"] and "--quick" not in words and "--mesh" not in words
    work = words[0] == "fluxforge" and words[1] in ("discover", "sweep", "reproduce", "bench") and "--show" not in words
    return certify or work


def is_simulation(words: list[str]) -> bool:
    """Simulations of which nothing is kept. The README lists one for each equation, whose pages run others."""
    return words[:2] == ["fluxforge", "simulate"] and not {"-o", "--output"} & set(words)


def stand_in(words: list[str], where: str) -> None:
    """Instead of a long command: its words are parsed, and a discovery leaves the scheme it would have found."""
    options = parsed(words[1:], where)
    if words[1] != "discover" or options["resume"] is not None:
        return
    spec = recipe.load(options["recipe"] or "first-order", preset=options["preset"])
    folder = Path(options["output"] or Path("runs") / spec.name)
    folder.mkdir(parents=True)
    twin = find(TWINS.get(spec.name, "euler"))
    save(replace(twin, name=f"discovered-{spec.name}", summary="", claims=Claims()), folder / "scheme.json")


def parsed(words: list[str], where: str) -> dict[str, Any]:
    """The options of a command line, which is not carried out; one that does not parse fails."""
    command: Any = typer.main.get_command(app)
    try:
        while hasattr(command, "commands"):
            context = command.make_context("fluxforge", [words[0]])
            _, command, _ = command.resolve_command(context, [words[0]])
            words = words[1:]
        return dict(command.make_context(command.name, list(words)).params)
    except Exception as error:
        pytest.fail(f"{where}: {' '.join(words)}: {error}")


def check_target(name: str, where: str) -> None:
    """The Makefile has it."""
    assert f"\n{name}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), f"{where}: there is no target {name!r}"


def check_output(shown: list[str], printed: str, where: str) -> None:
    """Every line shown was printed, in that order, but for its numbers; … stands for anything."""
    rest = [shape(line) for line in printed.splitlines()]
    for line in shown:
        wanted, dots, _ = shape(line).partition("…")
        if not wanted.strip("# ") or set(wanted) <= set("─ "):
            continue
        matches = [k for k, each in enumerate(rest) if (each.startswith(wanted.strip()) if dots else each == wanted)]
        assert matches, f"{where}: the page shows {line!r}, and what was printed is\n{printed}"
        rest = rest[matches[0] + 1 :]


def _written(block: Block, where: str) -> Path:
    assert block.file, f"{where}: the line before should end in the file's name and a colon"
    path = Path(block.file)
    path.write_text(block.text, encoding="utf-8")
    return path
