"""Running the command line as a process of its own, and the result of a run."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one strict JSON document."""
        return json.loads(self.out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


Cli = Callable[..., Outcome]


def start(*arguments: object, **more: Any) -> subprocess.Popen[str]:
    """The command line as a process."""
    command = [sys.executable, "-m", "fluxforge", *(str(argument) for argument in arguments)]
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **more)


def only_line(text: str) -> str:
    """The one line that an error is."""
    assert text.endswith("\n")
    (line,) = text.splitlines()
    return line
