"""Mesh files for the tests: one small mesh in every format, .msh text of any points and elements, and refusals."""

import contextlib
import importlib
import io
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import meshio
import numpy as np
import pytest

from fluxforge.errors import MeshError, MeshReadError
from fluxforge.mesh import Mesh, read
from fluxforge.mesh._from_arrays import build_mesh

POINTS = np.array(
    [[0, 0, 0], [1, 0, 0], [2, 0.1, 0], [0, 1, 0], [1, 1, 0], [2, 1, 0], [0.3, 2, 0], [1, 2, 0], [2, 7 / 3, 0]], float
)
TRIANGLES = np.array([[1, 2, 5], [1, 5, 4]])
QUADRILATERALS = np.array([[0, 1, 4, 3], [3, 4, 7, 6], [4, 5, 8, 7]])
INLET, WALL = np.array([[0, 3], [3, 6]]), np.array([[0, 1], [1, 2]])

LINE, TRIANGLE, QUADRILATERAL = 1, 2, 3
SQUARE = [(0, 0), (1, 0), (1, 1), (0, 1)]
HALVES = [(TRIANGLE, (0, 1, 2)), (TRIANGLE, (0, 2, 3))]

HAND_WRITTEN = """$Comments
written by hand
$EndComments
$MeshFormat
2.2 0 8
$EndMeshFormat
$PhysicalNames
2
1 1 "inlet"
1 2 "wall"
$EndPhysicalNames
$Nodes
9
10 0 0 0
20 1 0 0
30 2 0.1 0
40 0 1 0
50 1 1 0
60 2 1 0
70 0.3 2 0
80 1 2 0
90 2 2.3333333333333335 0
$EndNodes
$Elements
10
1 15 2 0 1 10
2 1 2 1 1 10 40
3 1 2 1 1 40 70
4 1 2 2 2 10 20
5 1 3 2 2 4 20 30
6 2 2 3 1 20 30 60
7 3 2 3 1 10 20 50 40
8 2 2 3 1 20 60 50
9 3 2 3 1 40 50 80 70
10 3 2 3 1 50 60 90 80
$EndElements
"""


def gmsh_drawing() -> meshio.Mesh:
    """The small mesh with its two tags, as meshio wants it for .msh."""
    blocks = [("line", INLET), ("line", WALL), ("triangle", TRIANGLES), ("quad", QUADRILATERALS)]
    dim_tags = np.array([[2, 1]] * len(POINTS))
    # meshio writes an entity only where a node belongs to it.
    dim_tags[[3, 1, 4]] = [[1, 1], [1, 2], [2, 2]]
    lengths = [len(corners) for _, corners in blocks]
    return meshio.Mesh(
        POINTS,
        blocks,
        cell_data={
            "gmsh:physical": [np.full(n, tag) for n, tag in zip(lengths, (1, 2, 3, 3), strict=True)],
            "gmsh:geometrical": [np.full(n, tag) for n, tag in zip(lengths, (1, 2, 1, 2), strict=True)],
        },
        field_data={"inlet": np.array([1, 1]), "wall": np.array([2, 1]), "domain": np.array([3, 2])},
        point_data={"gmsh:dim_tags": dim_tags},
    )


def plain_drawing() -> meshio.Mesh:
    """The small mesh without tags, with a field."""
    blocks = [("triangle", TRIANGLES), ("quad", QUADRILATERALS)]
    return meshio.Mesh(POINTS, blocks, cell_data={"T": [np.ones(2), np.arange(3.0)]})


def _raw_vtu(compressed: bool) -> bytes:
    """What ParaView writes by default: arrays appended as raw bytes, which meshio does not write."""
    arrays = [
        POINTS,
        np.concatenate([TRIANGLES.ravel(), QUADRILATERALS.ravel()]),
        np.cumsum([3, 3, 4, 4, 4]),
        np.array([5, 5, 9, 9, 9], np.uint8),
    ]
    blob, offsets = b"", []
    for array in arrays:
        offsets.append(len(blob))
        data = array.tobytes()
        if compressed:
            packed = zlib.compress(data)
            blob += struct.pack("<4I", 1, len(data), 0, len(packed)) + packed
        else:
            blob += struct.pack("<I", len(data)) + data
    names = ["Points", "connectivity", "offsets", "types"]
    kinds = ['Float64" NumberOfComponents="3', "Int64", "Int64", "UInt8"]
    tags = [
        f'<DataArray type="{kind}" Name="{name}" format="appended" offset="{offset}"/>'
        for kind, name, offset in zip(kinds, names, offsets, strict=True)
    ]
    compressor = ' compressor="vtkZLibDataCompressor"' * compressed
    head = (
        f'<VTKFile type="UnstructuredGrid" version="1.0" byte_order="LittleEndian" header_type="UInt32"{compressor}>\n'
        '<UnstructuredGrid><Piece NumberOfPoints="9" NumberOfCells="5">\n'
        f"<Points>{tags[0]}</Points>\n<Cells>{''.join(tags[1:])}</Cells>\n"
        '</Piece></UnstructuredGrid>\n<AppendedData encoding="raw">\n_'
    )
    return head.encode() + blob + b"\n</AppendedData></VTKFile>\n"


WRITERS: dict[str, Callable[[Path], object]] = {
    "msh2-text.msh": lambda path: meshio.gmsh.write(path, gmsh_drawing(), "2.2", binary=False),
    "msh2-binary.msh": lambda path: meshio.gmsh.write(path, gmsh_drawing(), "2.2", binary=True),
    "msh4-text.msh": lambda path: meshio.gmsh.write(path, gmsh_drawing(), "4.1", binary=False),
    "msh4-binary.msh": lambda path: meshio.gmsh.write(path, gmsh_drawing(), "4.1", binary=True),
    "hand-written.msh": lambda path: path.write_text(HAND_WRITTEN),
    "vtk4-text.vtk": lambda path: meshio.vtk.write(path, plain_drawing(), "4.2", binary=False),
    "vtk4-binary.vtk": lambda path: meshio.vtk.write(path, plain_drawing(), "4.2", binary=True),
    "vtk5-text.vtk": lambda path: meshio.vtk.write(path, plain_drawing(), "5.1", binary=False),
    "vtk5-binary.vtk": lambda path: meshio.vtk.write(path, plain_drawing(), "5.1", binary=True),
    "text.vtu": lambda path: meshio.vtu.write(path, plain_drawing(), binary=False),
    "plain.vtu": lambda path: meshio.vtu.write(path, plain_drawing(), compression=None),
    "zlib.vtu": lambda path: meshio.vtu.write(path, plain_drawing(), compression="zlib"),
    "lzma.vtu": lambda path: meshio.vtu.write(path, plain_drawing(), compression="lzma"),
    "raw.vtu": lambda path: path.write_bytes(_raw_vtu(compressed=False)),
    "raw-zlib.vtu": lambda path: path.write_bytes(_raw_vtu(compressed=True)),
    "xml.xdmf": lambda path: meshio.xdmf.write(path, plain_drawing(), data_format="XML"),
    "hdf.xdmf": lambda path: meshio.xdmf.write(path, plain_drawing(), data_format="HDF"),
    "medit.mesh": lambda path: meshio.medit.write(path, plain_drawing()),
    "wavefront.obj": lambda path: meshio.obj.write(path, plain_drawing()),
}
WITH_TAGS = [name for name in WRITERS if name.endswith(".msh")]


def write_sample(name: str, folder: Path) -> Path:
    """The small mesh in one of the formats of WRITERS."""
    path = folder / name
    with contextlib.redirect_stderr(io.StringIO()):
        WRITERS[name](path)
    return path


def msh(
    points: Sequence[Sequence[float | str]],
    elements: Sequence[tuple[int, Sequence[int]]],
    *,
    names: Sequence[str] = (),
    tags: Sequence[int] | None = None,
) -> str:
    """A .msh file of version 2.2: elements are (gmsh type, corners from 0), `tags` their physical tags."""
    tags = tags or [0] * len(elements)
    lines = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat"]
    if names:
        lines += ["$PhysicalNames", str(len(names))]
        lines += [f'1 {k} "{name}"' for k, name in enumerate(names, start=1)] + ["$EndPhysicalNames"]
    lines += ["$Nodes", str(len(points))]
    lines += [f"{k} {' '.join(str(x) for x in (*point, 0)[:3])}" for k, point in enumerate(points, start=1)]
    lines += ["$EndNodes", "$Elements", str(len(elements))]
    for k, ((kind, corners), tag) in enumerate(zip(elements, tags, strict=True), start=1):
        lines.append(f"{k} {kind} 2 {tag} 1 " + " ".join(str(corner + 1) for corner in corners))
    return "\n".join([*lines, "$EndElements", ""])


def refusal(path: Path, capsys: pytest.CaptureFixture[str] | None = None) -> str:
    """The message with which a file is refused, without its path."""
    with pytest.raises(MeshReadError) as caught:
        read(path)
    message = str(caught.value)
    assert isinstance(caught.value, MeshError)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    if capsys is not None:
        assert capsys.readouterr() == ("", "")
    return message.removeprefix(f"{path}: ")


def refused_text(folder: Path, text: str | bytes, name: str = "bad.msh") -> str:
    """The message with which a file of this content is refused."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return refusal(path)


def shapes(mesh: Mesh) -> set[frozenset[tuple[float, float]]]:
    """The cells as sets of places, whatever the numbering."""
    places = [tuple(point) for point in mesh.points.round(10).tolist()]
    return {frozenset(places[k] for k in cell if k >= 0) for cell in mesh.cells.tolist()}


def sample_mesh() -> Mesh:
    """The small mesh with triangles and quadrilaterals in turn."""
    cells = [QUADRILATERALS[0], [*TRIANGLES[0], -1], QUADRILATERALS[1], [*TRIANGLES[1], -1], QUADRILATERALS[2]]
    boundary = {"inlet": INLET, "the wall": WALL}
    return build_mesh(POINTS[:, :2], np.array(cells), boundary=boundary, origin="sample")


def same(a: Mesh, b: Mesh) -> bool:
    """Whether two meshes agree in every point, cell and tagged edge, in their order."""
    return (
        np.array_equal(a.points, b.points)
        and np.array_equal(a.cells, b.cells)
        and list(a.boundary) == list(b.boundary)
        and all(np.array_equal(a.boundary[tag], b.boundary[tag]) for tag in a.boundary)
    )


@contextlib.contextmanager
def gmsh_session() -> Iterator[Any]:
    """The real gmsh, where its wheel finds its system libraries; elsewhere the test is skipped."""
    try:
        module = importlib.import_module("gmsh")
    except (ImportError, OSError) as error:
        pytest.skip(f"gmsh does not load here: {error}")
    module.initialize(readConfigFiles=False, interruptible=False)
    module.option.setNumber("General.Terminal", 0)
    try:
        yield module
    finally:
        module.finalize()
