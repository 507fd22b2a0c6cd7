"""A mesh as a C header, compiled with an emitted step and nothing else."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from _emit_meshes import fields, mixed, table, triangles
from _emit_run import STRICT, relative

from fluxforge.mesh import DualGraph, dual, squares
from fluxforge.scheme.emit import emit, emit_c_mesh, mesh_arrays
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import stepper

MAIN = """
#include <stdio.h>
#include "step.c"
#include "step_mesh.h"
#include "other_mesh.h"
#include "step_mesh.h"
#include "fields.h"

int main(void)
{
    static double T_new[step_mesh_cells];
    if (other_mesh.cells != other_mesh_cells) return 2;
    if (NAME_step(&step_mesh, DT, 0.7, T, S, T_new)) return 1;
    for (size_t i = 0; i < step_mesh.cells; i++)
        printf("%.17g %.17g %.17g\\n", T_new[i], step_mesh_x[i], step_mesh_y[i]);
    return 0;
}
"""


def _run(name: str, graph: DualGraph, folder: Path, dt: float) -> np.ndarray:
    """What the program prints: a row per cell."""
    T, S = fields(graph)
    (folder / "step.c").write_text(emit(BUILT_IN[name], "c"))
    # Twice the one and another beside it: a program may have several meshes.
    (folder / "step_mesh.h").write_text(emit_c_mesh(graph, "step-mesh"))
    (folder / "other_mesh.h").write_text(emit_c_mesh(dual(squares(2)), "other_mesh"))
    values = {"T": T, "S": S}
    lines = [f"static const double {k}[] = {{{', '.join(map(repr, v.tolist()))}}};" for k, v in values.items()]
    (folder / "fields.h").write_text("\n".join([*lines, f"#define DT {dt!r}", ""]))
    (folder / "main.c").write_text(MAIN.replace("NAME", name.replace("-", "_")))
    command = [shutil.which("cc"), *STRICT, str(folder / "main.c"), "-o", str(folder / "main"), "-lm"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    printed = subprocess.run([str(folder / "main")], capture_output=True, text=True, check=True).stdout
    return np.array([line.split() for line in printed.splitlines()], float)


@pytest.mark.parametrize("name", ["euler", "two-hop", "corrected", "crank-nicolson"])
@pytest.mark.parametrize("make", [triangles, mixed])
def test_a_program_of_two_emitted_files_takes_our_step(
    name: str, make: Callable[[], DualGraph], tmp_path: Path
) -> None:
    graph = make()
    dt = 1e-3
    T, S = fields(graph)
    rows = _run(name, graph, tmp_path, dt)
    wanted = np.asarray(stepper(name, graph, dt, diffusivity=0.7, source=S)(T))
    assert relative(rows[:, 0], wanted) < (1e-11 if name == "crank-nicolson" else 1e-13)
    assert np.array_equal(rows[:, 1:], graph.x)


@pytest.mark.parametrize("make", [triangles, mixed])
def test_the_tables_are_those_of_the_emitted_interface(make: Callable[[], DualGraph]) -> None:
    graph = make()
    tables, wanted, used = mesh_arrays(graph), table(graph), graph.slot_mask
    assert list(tables) == list(wanted)
    for name, value in wanted.items():
        # What unused slots hold is nobody's business.
        seen = used if value.shape == used.shape else slice(None)
        # Products and sums of two terms, written in another order, of the size of δ.
        close = 4 * np.finfo(float).eps * graph.delta.max() if name in ("d_n", "d_t", "p_x", "p_y") else 0.0
        assert np.allclose(tables[name][seen], value[seen], rtol=0.0, atol=close), name


def test_a_name_cannot_leave_its_comment() -> None:
    text = emit_c_mesh(replace(triangles(), origin="a*/ int x; /*\n??/.msh"))
    first = text.splitlines()[0]
    assert first == "/* a* / int x; / * ? ?/.msh: 72 cells, 24 boundary faces. */"
