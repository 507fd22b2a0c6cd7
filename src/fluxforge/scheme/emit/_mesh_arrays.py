"""A mesh as arrays for emitted NumPy and JAX code, and a main function that steps a field on it."""

import math
import os
from collections.abc import Collection, Iterator

import numpy as np

from fluxforge.errors import InputError, MeshError
from fluxforge.expression._symbols import COORDINATES
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph, check_plain_walls
from fluxforge.mesh._hops import lines
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import Settings, reference_step, resolve
from fluxforge.mesh._read import as_mesh
from fluxforge.pde._equation import Equation, Example
from fluxforge.scheme._scheme import Hop, Scheme
from fluxforge.scheme.emit._c_text import MESH
from fluxforge.scheme.emit._plan import Arguments, c_comment, to_identifier, to_one_line

# `call` lists the arguments of the step after T, S and mesh.
_MAIN = '''

def main(path, steps="10"):
    """Step the field T of an .npz file that holds the mesh and all arguments by name; print the result."""
{prepare}    with np.load(path) as file:
        data = {{name: file[name] for name in file.files}}
    mesh = Mesh(**{{name: data[name] for name in Mesh._fields if name in data}})
    T = data["T"]
    for _ in range(int(steps)):
        T = {step}(T, data["S"], mesh, {call})
    print(f"min {{T.min():.17g}} max {{T.max():.17g}} total {{(mesh.V * T).sum():.17g}}")


if __name__ == "__main__":
    import sys

    if len(sys.argv) < 2:
        sys.exit("usage: python FILE.py MESH.npz [STEPS]")
    main(*sys.argv[1:3])
'''
_PREPARATION = {
    "numpy": ("", "step"),
    "jax": (
        '    import numpy as np\n\n    jax.config.update("jax_enable_x64", True)\n    advance = jax.jit(step)\n',
        "advance",
    ),
}


def mesh_arrays(graph: DualGraph | Mesh | str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays that emitted NumPy, JAX and C code reads, by their names there: `Mesh(**mesh_arrays(graph))`.

    `graph` is a dual graph with its boundary conditions, or a mesh or the path of its file for T = 0 on the boundary.
    Raises InputError for anything else, and for Robin and inflow walls, which exported code does not have.
    """
    graph = graph if isinstance(graph, DualGraph) else dual(as_mesh(graph, "graph"))
    check_plain_walls(graph, "exported code")
    boundary = slice(graph.interior, None)
    return {
        "node": graph.slot_node,
        "used": graph.slot_mask,
        **graph.legs(),
        "V": graph.V,
        "ghost_owner": graph.owner[boundary],
        "ghost_neumann": graph.neumann,
        "ghost_value": graph.value,
        "ghost_delta": graph.delta[boundary],
        **_line_tables(graph),
    }


def _line_tables(graph: DualGraph) -> dict[str, np.ndarray]:
    """The tables of lines of cells; empty if the mesh has no such lines."""
    try:
        lines_of_cells = lines(graph)
    except MeshError:
        return {}
    return {"behind": lines_of_cells.behind, "ahead": lines_of_cells.ahead}


def check_lines(scheme: Scheme, graph: DualGraph) -> None:
    """Raise MeshError, naming a cell, where the scheme reads lines of cells that the mesh does not have."""
    if Hop.LINE in scheme.hops():
        lines(graph)


def placeholders(equation: Equation, dimension: int, given: Collection[str] = ()) -> dict[str, Example]:
    """Values of `Equation.example` for the parameters that have no default and are not among the given names."""
    missing = {p.name for p in equation.parameters if p.default is None} - set(given)
    return {name: value for name, value in equation.example(dimension).items() if name in missing}


def example_arrays(scheme: Scheme, graph: DualGraph, parameters: Settings | None = None) -> dict[str, np.ndarray]:
    """Arrays for the main function of emitted Python code: the mesh, its centroids, and an example of all arguments.

    T is a bump of height 1 in the middle of the mesh, S = 0, dt half the reference step. Parameters that are not given
    have their default values, or those of `placeholders` where there are none. Raises InputError and EquationError for
    values that cannot be used (see `resolve`).
    """
    check_lines(scheme, graph)
    given = dict(parameters or {})
    values: Settings = {**placeholders(scheme.equation, graph.dimension, given), **given}
    fields = resolve(scheme.equation, graph, values)
    low, high = graph.x.min(axis=0), graph.x.max(axis=0)
    T = np.exp(-10.0 * ((graph.x - 0.5 * (low + high)) ** 2).sum(axis=1) / ((high - low).max() ** 2 or 1.0))
    reference = reference_step(scheme.equation, graph, values, T)
    data = {**fields.constants, **fields.cells, **fields.slots, **fields.tangential}
    data |= {"dt": 0.5 * reference if 0 < reference < math.inf else 1.0, "T": T, "S": np.zeros(graph.cells)}
    wanted = ("T", "S", *Arguments.of(scheme).names)
    arrays = {name: np.asarray(data[name]) for name in wanted}
    return mesh_arrays(graph) | dict(zip(COORDINATES, graph.x.T, strict=False)) | arrays


def python_main(scheme: Scheme, target: str) -> str:
    """The text of a main function to append to a scheme's `numpy` or `jax` code; InputError for another target."""
    if target not in _PREPARATION:
        raise InputError(f"a main function is written for {' and '.join(_PREPARATION)}, not for {target!r:.60}")
    prepare, step = _PREPARATION[target]
    call = ", ".join(f'data["{name}"]' for name in Arguments.of(scheme).names)
    return _MAIN.format(prepare=prepare, step=step, call=call)


_NUMBERS_PER_LINE = 8


def emit_c_mesh(graph: DualGraph, name: str = "mesh") -> str:
    """A header with a fluxforge_mesh of that name, its arrays, and the cells' centroids, NAME_x, NAME_y (and NAME_z).

    The number of cells is a constant, NAME_cells, so that fields can be arrays of that size.
    """
    name = to_identifier(name)
    tables = mesh_arrays(graph)
    sizes = {"cells": graph.cells, "slots": graph.slot_node.shape[1], "ghosts": graph.ghosts}
    members = {**sizes, **{key: f"{name}_{key}" for key in tables}}
    arrays = {**tables, **dict(zip(COORDINATES, graph.x.T, strict=False))}
    return "\n".join(
        [
            f"/* {_title(graph)}: {graph.cells} cells, {graph.ghosts} boundary faces. */",
            f"#ifndef FLUXFORGE_{name.upper()}_H",
            f"#define FLUXFORGE_{name.upper()}_H",
            "#include <stddef.h>",
            "",
            MESH,
            f"enum {{ {name}_cells = {graph.cells} }};",
            *(line for key, values in arrays.items() for line in _array(f"{name}_{key}", values)),
            f"static const fluxforge_mesh {name} = {{",
            *(f"    .{key} = {value}," for key, value in members.items()),
            "};",
            "#endif",
            "",
        ]
    )


def _array(name: str, values: np.ndarray) -> Iterator[str]:
    kind = {"f": "double", "i": "int", "b": "unsigned char"}[values.dtype.kind]
    # 17 significant digits determine every double.
    numbers = [f"{value:.17g}" for value in values.ravel().tolist()]
    yield f"static const {kind} {name}[] = {{"
    yield from (
        f"    {', '.join(numbers[k : k + _NUMBERS_PER_LINE])}," for k in range(0, len(numbers), _NUMBERS_PER_LINE)
    )
    yield "};"


def _title(graph: DualGraph) -> str:
    """The origin of the mesh as text that is safe in a comment."""
    return c_comment(to_one_line(graph.origin)) or "a mesh"
