"""Processes of sweeps that the nursery forks."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent


def program(nursery: Path, kind: str) -> tuple[str, ...]:
    """The command line of a process that the nursery forks."""
    return (sys.executable, "-S", "-E", str(HERE / "sweep_client.py"), str(nursery), kind)


def start_parent(nursery: Path, *arguments: object) -> "subprocess.Popen[str]":
    """The command line in a process of its own, with workers of the tests."""
    environment = {**os.environ, "COLUMNS": "100", "SWEEP_PROGRAM": json.dumps(program(nursery, "work"))}
    return subprocess.Popen(
        [*program(nursery, "lead"), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    """Wait until a file exists."""
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
