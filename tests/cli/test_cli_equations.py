"""An equation of a user's own, from its TOML file to code, without touching the package."""

import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cli_runs import Cli, only_line

from fluxforge.mesh import Neumann, dual, read
from fluxforge.stepping import stepper

FISHER = """\
name = "fisher"
diffusion = "D"
reaction = "r*u*(1 - u)"
unknown_units = {}
[parameters.D]
units = { length = 2, time = -1 }
default = 0.01
[parameters.r]
units = { time = -1 }
"""


@pytest.fixture
def fisher(tmp_path: Path) -> Path:
    path = tmp_path / "fisher.toml"
    path.write_text(FISHER, encoding="utf-8")
    return path


def test_simulate_takes_an_equation_and_its_parameters(cli: Cli, mesh_file: Path, fisher: Path) -> None:
    words = ("simulate", "rk4", "--equation", fisher, "--set", "r=2", "--mesh", mesh_file, "--boundary", "insulated")
    told = cli(*words, "--initial", "0.1", "--dt", 0.01, "--steps", 100, "--json")
    assert (told.code, told.err) == (0, "")
    # The logistic function at t = 1; each step errs by less than (r dt)^5.
    assert told.json["max"] == pytest.approx(1 / (1 + 9 * np.exp(-2.0)), abs=100 * 0.02**5)
    assert told.json["dt_limit"] is None
    assert told.json["notes"] == []


def test_velocities_are_given_as_formulas(cli: Cli, mesh_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "carried.toml"
    path.write_text(
        'name = "carried"\ntransported = "u"\nvelocity = "a"\n[parameters.a]\nrank = "vector"\nwhere = "face"\n'
    )
    told = cli(
        *("simulate", "euler", "--equation", path, "--set", "a=(0.5 - y, x - 0.5)", "--mesh", mesh_file),
        *("--initial", "exp(-40*((x - 0.7)**2 + (y - 0.5)**2))", "--steps", 20, "--json"),
    )
    assert (told.code, told.err) == (0, "")
    # Upwind below its limit keeps within the data.
    assert -1e-12 < told.json["min"] <= told.json["max"] < 1.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "r"), "--set 'r' should be NAME=VALUE"),
        (("--set", "q=1"), "has no parameter 'q'"),
        ((), "parameter 'r' has no value"),
        (("--set", "r=fast"), "parameter 'r' should be a finite number"),
        (("--set", "r=1", "--diffusivity", "1"), "has no diffusivity"),
    ],
)
def test_bad_parameters_are_one_line(
    cli: Cli, mesh_file: Path, fisher: Path, words: tuple[str, ...], said: str
) -> None:
    told = cli("simulate", "euler", "--equation", fisher, "--mesh", mesh_file, *words)
    assert told.code == 2
    assert said in only_line(told.err)


def test_a_file_of_a_parameter_has_one_value_per_cell(cli: Cli, mesh_file: Path, fisher: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "r.npy", np.ones(3))
    words = ("--set", f"r=@{tmp_path / 'r.npy'}")
    told = cli("simulate", "euler", "--equation", fisher, "--mesh", mesh_file, *words)
    assert told.code == 2
    line = only_line(told.err)
    assert "--set r: " in line
    assert "holds values of shape (3,), and the mesh has" in line


def test_a_tensor_is_given_as_rows(cli: Cli, mesh_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "turned.toml"
    path.write_text('name = "turned"\ndiffusion = "K"\n[parameters.K]\nrank = "tensor"\n')
    words = ("simulate", "euler", "--equation", path, "--mesh", mesh_file, "--initial", "x", "--steps", 2, "--json")
    told = cli(*words, "--set", "K=((1,0),(0,2))")
    assert (told.code, told.err) == (0, "")


def test_an_unknown_equation_is_one_line(cli: Cli, mesh_file: Path) -> None:
    told = cli("simulate", "euler", "--equation", "heet", "--mesh", mesh_file)
    assert told.code == 2
    assert "Did you mean 'heat'" in only_line(told.err)


def test_a_certificate_of_an_equation_from_a_file_is_that_of_its_equation(cli: Cli, fisher: Path) -> None:
    told = cli("verify", "midpoint", "--equation", fisher, "--quick", "--families", "squares", "--json")
    assert told.code == 0
    verdicts = {line["property"]: line["verdict"] for line in told.json["lines"]}
    assert verdicts["conservative"] == verdicts["unchanged by units"] == "holds"
    assert verdicts["linear in u, S and boundary data"] == "fails"
    shown = " ".join(cli("verify", "midpoint", "--equation", fisher, "--quick", "--families", "squares").out.split())
    assert shown.count("so it has no matrix") == 1
    merged = "patch tests, order in time, stability, transient growth, maximum principle, squares"
    assert f"not established {merged} the scheme is not linear, so it has no matrix" in shown
    assert verdicts["patch tests"] == verdicts["squares"] == verdicts["cost of a step"] == "not established"


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_exported_code_and_scheme_take_the_same_step(cli: Cli, mesh_file: Path, fisher: Path, tmp_path: Path) -> None:
    code, scheme = tmp_path / "fisher.c", tmp_path / "fisher.json"
    for target, path, more in (("c", code, ("--mesh", mesh_file, "--boundary", "insulated")), ("json", scheme, ())):
        told = cli("export", "rk4", "--equation", fisher, "--to", target, "-o", path, *more)
        assert (told.code, told.err) == (0, "")
    assert json.loads(scheme.read_text())["equation"]["reaction"] == "r*u*(1 - u)"
    # A step on the exported mesh, compiled with nothing of ours.
    program = '#include "fisher.c"\n#include "fisher_mesh.h"\n'
    program += "int one(const double *T, const double *S, double *out)\n"
    program += "{ return rk4_step(&fisher_mesh, 0.01, 0.01, 2.0, T, S, out); }\n"
    (tmp_path / "one.c").write_text(program)
    library = tmp_path / "one.so"
    command = ["cc", "-std=c99", "-O1", "-shared", "-fPIC", str(tmp_path / "one.c"), "-o", str(library), "-lm"]
    subprocess.run(command, check=True)
    graph = dual(read(mesh_file), Neumann())
    T, out = np.random.default_rng(0).random(graph.cells), np.empty(graph.cells)
    nothing = np.zeros(graph.cells)
    status = ctypes.CDLL(str(library)).one(*(ctypes.c_void_p(a.ctypes.data) for a in (T, nothing, out)))
    assert status == 0
    wanted = np.asarray(stepper(scheme, graph, 0.01, parameters={"r": 2.0})(T))
    assert np.abs(out - wanted).max() < 1e-14


STORED = (
    'name = "stored"\ndiffusion = "k"\ncapacity = "c"\n[parameters.k]\ndefault = 1.0\n[parameters.c]\nwhere = "cell"\n'
)


def test_the_total_is_weighted_by_the_capacity(cli: Cli, mesh_file: Path, tmp_path: Path) -> None:
    """Σ V u of a capacity that varies is not conserved, Σ c V u is."""
    path = tmp_path / "stored.toml"
    path.write_text(STORED, encoding="utf-8")
    words = ("simulate", "euler", "--equation", path, "--set", "c=1 + 3*x", "--mesh", mesh_file, "--initial", "x*y")
    totals = [cli(*words, "--boundary", "insulated", "--steps", n, "--json").json["heat"] for n in (1, 60)]
    assert totals[1] == pytest.approx(totals[0], rel=1e-12)
    graph = dual(read(mesh_file))
    x, y = graph.x.T
    assert totals[0] == pytest.approx(float((1 + 3 * x) * graph.V @ (x * y)), rel=1e-12)


def test_a_run_uses_the_terms_of_its_equation(cli: Cli, mesh_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "carried.toml"
    path.write_text('name = "carried"\ntransported = "u"\nvelocity = "a"\n[parameters.a]\nrank = "vector"\n')
    words = ("simulate", "euler", "--equation", path, "--set", "a=(1, 0)", "--mesh", mesh_file, "--initial", "x")
    told = cli(*words, "--steps", 2)
    assert "0.5 of the Courant step" in told.out
    assert "total Σ V u" in told.out
    assert "u at the end" in told.out
    assert "heat" not in told.out
    assert "of the Courant step): use a smaller step" in only_line(cli(*words, "--dt-fraction", "1.5").err)
    path.write_text(STORED, encoding="utf-8")
    told = cli("simulate", "euler", "--equation", path, "--set", "c=2", "--mesh", mesh_file, "--initial", "x")
    assert "total Σ c V u" in told.out


def test_a_tensor_that_the_two_point_flux_misses_causes_a_note(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "turned.toml"
    path.write_text('name = "turned"\ndiffusion = "K"\n[parameters.K]\nrank = "tensor"\n')
    words = ("simulate", "euler", "--equation", path, "--initial", "x", "--steps", 2, "--json")
    grid = tmp_path / "grid.msh"
    assert cli("mesh", "family", "squares", "-n", 4, "-o", grid).code == 0
    # Across sides of squares K n makes tan φ = 1/2 and 1/3 with d = h n.
    (note,) = cli(*words, "--mesh", grid, "--set", "K=((2,1),(1,3))").json["notes"]
    assert "K n is not parallel to d on 100% of the faces, by up to 26.6°" in note
    assert cli(*words, "--mesh", grid, "--set", "K=((2,0),(0,3))").json["notes"] == []
