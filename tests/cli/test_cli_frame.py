"""What all commands share: help, version, errors, exit codes, signals."""

import os
import re
import shlex
import signal
from importlib.metadata import version
from typing import Any

import pytest
import typer
from cli_runs import Cli, only_line

from fluxforge.cli import _catalogue
from fluxforge.cli._main import app


def _paths(command: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = getattr(command, "commands", {})
    return [path, *(each for name, sub in below.items() for each in _paths(sub, (*path, name)))]


PATHS = _paths(typer.main.get_command(app))


def test_every_command_of_the_contract_that_exists_is_there() -> None:
    assert {path[0] for path in PATHS if path} == {
        "discover",
        "sweep",
        "simulate",
        "rerun",
        "verify",
        "equations",
        "schemes",
        "mesh",
        "export",
        "reproduce",
        "bench",
        "doctor",
    }
    assert {path[1] for path in PATHS if path[:1] == ("mesh",) and path[1:]} == {
        "square",
        "disk",
        "polygon",
        "family",
        "info",
    }


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_ends_with_an_example_of_the_command(cli: Cli, path: tuple[str, ...], option: str) -> None:
    told = cli(*path, option)
    assert (told.code, told.err) == (0, "")
    _, examples = told.out.split("Examples:")
    assert examples.strip().startswith(" ".join(("fluxforge", *path)))
    # Placeholders and choices, never the name of a Python type, and no braces around them.
    assert not re.search(r"<\w|\{", told.out)


@pytest.mark.parametrize("path", [path for path in PATHS if path], ids=" ".join)
def test_examples_of_the_help_are_command_lines(path: tuple[str, ...]) -> None:
    command: Any = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]
    for example in command.epilog.split("\n\n")[1:]:
        program, *words = shlex.split(example)
        assert program == "fluxforge"
        if not hasattr(command, "commands"):
            # Options that do not exist, or that lack a value, raise a usage error here.
            command.make_context("example", words[len(path) :])


@pytest.mark.parametrize("path", [(), ("mesh",), ("bench",)], ids=" ".join)
def test_a_group_without_a_command_shows_its_help(cli: Cli, path: tuple[str, ...]) -> None:
    assert cli(*path) == cli(*path, "--help")


def test_version(cli: Cli) -> None:
    assert cli("--version").out == f"fluxforge {version('fluxforge')}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("explode",), "'explode'"),
        (("mesh", "triangle"), "'triangle'"),
        (("--unheard-of",), "--unheard-of"),
        (("mesh", "info"), "FILE"),
        (("mesh", "square", "--kind", "odd"), "'regular', 'irregular'"),
        (("mesh", "square", "--cells", "1.5"), "1e6"),
        (("mesh", "polygon", "0,0 1,0 1;1"), "vertex 2"),
        (("mesh", "family", "two-cells", "-n", "3"), "two-cells"),
        (("mesh", "family", "squares", "--jitter", "0.1"), "jittered"),
        (("mesh", "info", "absent.msh"), "absent.msh"),
        (("schemes", "eulr"), "'euler'"),
        (("schemes", "absent.json"), "absent.json"),
        (("export", "euler"), "--to"),
        (("export", "euler", "--to", "fortran"), "'latex'"),
        (("export", "eulr", "--to", "c"), "'euler'"),
        (("simulate", "euler"), "--mesh"),
        (("simulate", "eulr", "--mesh", "absent.msh"), "absent.msh"),
        (("simulate", "euler", "--mesh", "m.msh", "--dt", "1", "--dt-fraction", "1"), "not both"),
        (("simulate", "euler", "--mesh", "m.msh", "--gif"), "-o"),
        (("bench", "step", "--cells", "many"), "'many'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    failed = cli(*arguments)
    assert failed.code == 2
    assert failed.out == ""
    line = only_line(failed.err)
    assert line.startswith("error: ")
    assert words in line


@pytest.mark.parametrize("where", ["first", "last"])
def test_debug_shows_the_traceback_wherever_it_stands(cli: Cli, where: str) -> None:
    words = ["schemes", "eulr"]
    failed = cli(*(["--debug", *words] if where == "first" else [*words, "--debug"]))
    assert failed.code == 2
    assert failed.err.startswith("Traceback")
    assert failed.err.splitlines()[-1].startswith("error: no scheme 'eulr'")


def _break(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr(_catalogue, "find", fail)


def test_an_unexpected_error_is_one_line_and_exit_code_1(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, RuntimeError("a pipe\nburst\x1b[31m"))
    failed = cli("schemes", "euler")
    assert failed.code == 1
    assert "\x1b" not in failed.err
    assert only_line(failed.err).startswith("internal error: RuntimeError: a pipe burst")
    assert only_line(failed.err).endswith("; run again with --debug for the traceback")


def test_lack_of_memory_says_what_to_do(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, MemoryError())
    failed = cli("schemes", "euler")
    assert failed.code == 1
    assert "fewer cells" in only_line(failed.err)


def test_ctrl_c_is_exit_code_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, KeyboardInterrupt())
    stopped = cli("schemes", "euler")
    assert (stopped.code, stopped.out) == (130, "")
    assert only_line(stopped.err).startswith("interrupted: ")


def test_a_request_to_terminate_is_exit_code_143_and_the_handler_is_put_back(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(_catalogue, "find", lambda name: os.kill(os.getpid(), signal.SIGTERM))
    assert cli("schemes", "euler").code == 143
    assert signal.getsignal(signal.SIGTERM) is before
