"""The command line as a process: start, streams, signals, pipes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runs import start

from fluxforge.mesh import squares, write

LIGHT = """
import sys
from fluxforge.cli import main
code = max(main(command.split()) for command in sys.argv[1:])
sys.exit(str({HEAVY} & set(sys.modules) or "") or code)
"""
HEAVY = ("jax", "sympy", "scipy", "numpy", "numba", "matplotlib")
# A description of a mesh needs formulas (SymPy) and connected parts (SciPy's graphs).
HEAVY_FOR_MESHES = ("jax", "equinox", "numba", "matplotlib", "scipy.spatial", "gmsh")


def run_light(heavy: tuple[str, ...], *commands: str) -> None:
    """Run commands in a process of their own, which fails if they have loaded one of these modules."""
    code = LIGHT.replace("HEAVY", ", ".join(map(repr, heavy)))
    subprocess.run([sys.executable, "-c", code, *commands], check=True, stdout=subprocess.DEVNULL)


def test_help_and_version_load_no_heavy_library() -> None:
    run_light(HEAVY, "--help", "--version")


def test_a_mesh_is_described_without_what_simulations_and_pictures_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("m.msh", "m.vtu"):
        write(squares(3), tmp_path / name)
    run_light(HEAVY_FOR_MESHES, "mesh info m.msh", "mesh info m.vtu")


def test_json_is_all_there_is_on_stdout(mesh_file: Path) -> None:
    with start(
        "simulate", "crank-nicolson", "--mesh", mesh_file, "--initial", "x*y", "--steps", 3, "--json"
    ) as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["steps"] == 3


def test_ctrl_c_while_fields_are_written_leaves_whole_files_only(tmp_path: Path, two_cells_file: Path) -> None:
    folder = tmp_path / "out"
    run = ("--mesh", two_cells_file, "--initial", "x", "--steps", 1500, "--save-every", 1, "-o", folder)
    with start("simulate", "euler", *run) as process:
        while not list(folder.glob("T_*.vtu")):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert err.startswith("interrupted: ")
    files = list(folder.iterdir())
    assert 0 < len(files) < 1500
    for path in files:
        assert not path.name.startswith(".")
        assert path.read_bytes().rstrip().endswith(b"</VTKFile>")


def test_a_reader_that_stops_early_is_no_error() -> None:
    with start("schemes") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_a_terminal_that_lacks_a_letter_gets_its_code() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "60"}
    command = [sys.executable, "-m", "fluxforge", "mesh", "info", "--help"]
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert told.stderr == ""
    assert "\\u2026" in told.stdout
