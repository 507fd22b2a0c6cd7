"""Exported NumPy and JAX code with a mesh beside it: it runs without fluxforge and takes our steps."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from _emit_meshes import mixed, table, triangles

import fluxforge as ff
from fluxforge.cli import main
from fluxforge.errors import InputError
from fluxforge.mesh import DualGraph
from fluxforge.pde import from_document
from fluxforge.scheme import find
from fluxforge.scheme.emit import emit, example_arrays, python_main

STEPS = 3
BOUNDARY = ("--boundary", "left=1 + y", "--boundary", "right=flux:0.3 - y", "--boundary", "top=insulated")
# The emitted sums are taken in another order than ours: some dozen terms of the field's size, at every step.
ROUNDED = 1e-13
EVERYTHING = from_document(
    {
        "name": "everything",
        "transported": "u",
        "velocity": "a",
        "diffusion": "k",
        "reaction": "-int*u",
        "parameters": {"a": {"rank": "vector", "where": "face"}, "k": {"where": "cell"}, "int": {}},
    }
)


def run_program(code: Path, arrays: Path) -> dict[str, float]:
    """What the program prints, run by itself: -I keeps the environment's module paths out, and with them fluxforge."""
    blocked = "import sys; sys.modules['fluxforge'] = None; sys.argv = sys.argv[1:]; import runpy; "
    start = f"{blocked}runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-I", "-c", start, str(code), str(arrays), str(STEPS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    match = re.fullmatch(r"min (\S+) max (\S+) total (\S+)\n", done.stdout)
    assert match is not None, done.stdout
    return dict(zip(("min", "max", "total"), map(float, match.groups()), strict=True))


def check_steps(shown: dict[str, float], T: np.ndarray, V: np.ndarray, within: float) -> None:
    size = np.abs(T).max()
    assert abs(shown["min"] - T.min()) <= within * size
    assert abs(shown["max"] - T.max()) <= within * size
    assert abs(shown["total"] - V @ T) <= within * size * V.sum()


@pytest.mark.parametrize(
    ("name", "target", "within"),
    # Conjugate gradients stop at a residual of 1e-13 of the right-hand side.
    [("midpoint", "numpy", ROUNDED), ("midpoint", "jax", ROUNDED), ("crank-nicolson", "numpy", 1e-11)],
)
def test_the_exported_program_takes_our_steps(name: str, target: str, within: float, tmp_path: Path) -> None:
    mesh = ff.mesh.jittered(5, 0.2, 1)
    ff.mesh.write(mesh, tmp_path / "m.msh")
    code = tmp_path / "mine.py"
    arguments = ["export", name, "--to", target, "--mesh", str(tmp_path / "m.msh"), "-o", str(code), *BOUNDARY]
    assert main(arguments) == 0
    arrays = tmp_path / "mine_mesh.npz"
    boundary = {"left": ff.Dirichlet("1 + y"), "right": ff.Neumann("0.3 - y"), "top": ff.Neumann()}
    graph = ff.dual(tmp_path / "m.msh", boundary)
    with np.load(arrays, allow_pickle=False) as data:
        np.testing.assert_array_equal(data["x"], graph.x[:, 0])
        step = ff.stepper(name, graph, float(data["dt"]))
        T = np.asarray(step.rollout(data["T"], STEPS))
        assert np.abs(T - data["T"]).max() > 0.1
    check_steps(run_program(code, arrays), T, graph.V, within)


def test_arguments_over_cells_and_faces_are_written_too(tmp_path: Path) -> None:
    graph, scheme = triangles(), find("euler", EVERYTHING)
    (tmp_path / "e.py").write_text(emit(scheme, "numpy") + python_main(scheme, "numpy"))
    arrays = example_arrays(scheme, graph)
    np.savez(tmp_path / "e.npz", allow_pickle=False, **arrays)
    values = EVERYTHING.example(2)
    step = ff.stepper(scheme, graph, float(arrays["dt"]), parameters=values)
    T = np.asarray(step.rollout(arrays["T"], STEPS))
    check_steps(run_program(tmp_path / "e.py", tmp_path / "e.npz"), T, graph.V, ROUNDED)


CARRIED = """name = "carried"
transported = "u"
velocity = "q"
diffusion = "D*m"
[parameters.q]
rank = "vector"
where = "face"
default = [1.0, 0.0]
[parameters.D]
where = "cell"
[parameters.m]
default = 0.25
"""


def test_parameters_are_stored_with_their_defaults_and_placeholders_are_named(tmp_path: Path, capsys) -> None:
    ff.mesh.write(ff.mesh.squares(3), tmp_path / "m.msh")
    (tmp_path / "e.toml").write_text(CARRIED)
    problem = ["--equation", str(tmp_path / "e.toml"), "--mesh", str(tmp_path / "m.msh"), "--boundary", "0"]
    arguments = ["export", "euler", "--to", "numpy", *problem, "-o", str(tmp_path / "e.py"), "--overwrite"]
    note = "note: stored placeholders: D = 1.0; give your own with --set NAME=VALUE\n"
    for given, D, told in (([], 1.0, note), (["--set", "D=3", "--set", "q=(0, 2)"], 3.0, "")):
        assert main([*arguments, *given]) == 0
        assert capsys.readouterr().err == told
        with np.load(tmp_path / "e_mesh.npz", allow_pickle=False) as data:
            assert float(data["m"]) == 0.25
            assert set(data["D"]) == {D}
            along = data["q_n"][data["used"]]
            want = data["n_x"] if not given else 2 * data["n_y"]
            np.testing.assert_array_equal(along, want[data["used"]])
    assert main([*arguments, "--set", "E=3"]) == 2
    assert "no parameter 'E'" in capsys.readouterr().err


def test_values_of_parameters_without_a_file_for_them_are_refused(tmp_path: Path, capsys) -> None:
    assert main(["export", "euler", "--to", "c", "--set", "alpha=2"]) == 2
    assert "--set is stored beside NumPy and JAX code" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("equation", "boundary", "held"),
    [
        ("advection-diffusion", [], "left, right, bottom, top"),
        ("advection-diffusion", ["--boundary", "left=1, top=insulated"], "right, bottom"),
        ("advection-diffusion", ["--boundary", "left=periodic:right, top=1"], "bottom"),
        ("advection-diffusion", ["--boundary", "left=1, rest=0"], None),
        ("advection-diffusion", ["--boundary", "0"], None),
        ("heat", [], None),
    ],
)
def test_walls_that_a_simulation_would_leave_open_are_named(
    equation: str, boundary: list[str], held: str | None, tmp_path: Path, capsys
) -> None:
    ff.mesh.write(ff.mesh.squares(3), tmp_path / "m.msh")
    problem = ["--equation", equation, "--mesh", str(tmp_path / "m.msh"), *boundary]
    assert main(["export", "euler", "--to", "c", *problem, "-o", str(tmp_path / "e.c")]) == 0
    told = capsys.readouterr().err
    assert told == "" if held is None else f"u = 0 is held at {held}, where `simulate` has free outflow" in told


@pytest.mark.parametrize("make", [triangles, mixed])
def test_the_arrays_of_a_graph_are_those_that_emitted_code_reads(make: Callable[[], DualGraph]) -> None:
    graph = make()
    tables, wanted, used = ff.mesh_arrays(graph), table(graph), graph.slot_mask
    assert tables.keys() == wanted.keys()
    for name, values in wanted.items():
        kept = used if values.shape == used.shape else ...
        # d_n and d_t are sums of two products, rounded in the size of d.
        np.testing.assert_allclose(tables[name][kept], values[kept], rtol=1e-14, atol=1e-15, err_msg=name)


def test_arrays_of_a_mesh_and_of_its_file_are_those_of_its_graph(tmp_path: Path) -> None:
    ff.mesh.write(mesh := ff.mesh.squares(3), path := tmp_path / "m.msh")
    for given in (mesh, path):
        np.testing.assert_array_equal(ff.mesh_arrays(given)["A"], ff.mesh_arrays(ff.dual(mesh))["A"])


@pytest.mark.parametrize("wall", [ff.Robin(2.0, 1.0), ff.Inflow(1.0)])
def test_a_wall_that_exported_code_does_not_have_is_named(wall: ff.Robin | ff.Inflow) -> None:
    graph = ff.dual(ff.mesh.squares(3), {"right": wall, "left": ff.Neumann()})
    wanted = "^the boundary condition of 'right': exported code supports only a value, neumann:Q or periodic:TAG$"
    with pytest.raises(InputError, match=wanted):
        ff.mesh_arrays(graph)


@pytest.mark.parametrize("name", ["numpy", "jax"])
def test_code_is_not_written_over_the_module_it_imports(name: str, tmp_path: Path, capsys) -> None:
    assert main(["export", "euler", "--to", name, "-o", str(tmp_path / f"{name}.py")]) == 2
    assert f"has the name of the module {name}" in capsys.readouterr().err.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def test_a_mesh_beside_other_targets_is_refused(tmp_path: Path) -> None:
    ff.mesh.write(ff.mesh.squares(2), tmp_path / "m.msh")
    arguments = ["export", "euler", "--to", "latex", "--mesh", str(tmp_path / "m.msh"), "-o", str(tmp_path / "a.tex")]
    assert main(arguments) == 2
    assert not (tmp_path / "a.tex").exists()
