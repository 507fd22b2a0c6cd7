"""Processes of sweeps that the nursery forks, and the files that runs leave."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# Times are in these, or in what they are digests of; the command of a run is another one.
OTHERWISE = ("report.html", "stages/outputs.json", "run.json")


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


def contents(folder: Path) -> dict[str, Any]:
    """The files of a run: documents without times, everything else bit for bit."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {
        name: _timeless(json.loads(path.read_bytes())) if name.endswith(".json") else path.read_bytes()
        for name, path in files.items()
        if name not in OTHERWISE and not name.endswith(".svg")
    }


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(each) for each in value]
    if isinstance(value, dict):
        return {name: _timeless(each) for name, each in value.items() if name not in ("seconds", "sha256")}
    return value
