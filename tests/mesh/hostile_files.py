"""Small mesh files that ask a careless reader for gigabytes, or for time that grows with the square of their size.

Each writer takes a folder and returns the path of one file. `SHAPES` names them all.
"""

import base64
import resource
import signal
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import h5py
import pytest

UNWRITTEN = 64 * 2**20
# The files have at most 8 MB, most of them less than 1 MB. A careless reader takes 3 GB and more, or minutes of the
# processor's time (not of the clock's: other work on the machine does not count); ours 0.2 GB and seconds.
MOST_BYTES, MOST_SECONDS = 2**30, 40.0


@contextmanager
def limit_resources(most_bytes: int = MOST_BYTES) -> Iterator[None]:
    """Let the block allocate so much more memory and no more, and take so many seconds of the processor."""

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"took more than {MOST_SECONDS} seconds of the processor")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    earlier = signal.signal(signal.SIGVTALRM, give_up)
    resource.setrlimit(resource.RLIMIT_AS, (held + most_bytes, hard))
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGVTALRM, earlier)


needs_limits = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs limits as Linux has them")


def many_tags_on_many_lines(folder: Path, tags: int = 50_000, lines: int = 5_000) -> Path:
    """A .msh 4.1 file whose curve has `tags` physical tags and `lines` lines: their product is 250 million."""
    text = ["$MeshFormat", "4.1 0 8", "$EndMeshFormat", "$Entities", "0 1 1 0"]
    text += [f"1 0 0 0 1 0 0 {tags} {' '.join(map(str, range(1, tags + 1)))} 0", "1 0 0 0 1 1 0 0 0", "$EndEntities"]
    text += ["$Nodes", "1 3 1 3", "2 1 0 3", "1", "2", "3", "0 0 0", "1 0 0", "0 1 0", "$EndNodes"]
    text += ["$Elements", f"2 {lines + 1} 1 {lines + 1}", f"1 1 1 {lines}"]
    text += [f"{k} 1 2" for k in range(1, lines + 1)]
    text += ["2 1 2 1", f"{lines + 1} 1 2 3", "$EndElements", ""]
    return _write_text(folder / "tags.msh", "\n".join(text))


def blank_lines_among_names(folder: Path, lines: int = 100_000) -> Path:
    """A .msh 2.2 file whose $PhysicalNames are blank lines."""
    text = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n1\n" + "\n" * lines + "$EndPhysicalNames\n"
    text += "$Nodes\n3\n1 0 0 0\n2 1 0 0\n3 0 1 0\n$EndNodes\n$Elements\n1\n1 2 2 0 1 1 2 3\n$EndElements\n"
    return _write_text(folder / "blank.msh", text)


def blank_lines_before_a_dataset(folder: Path, lines: int = 300_000) -> Path:
    """A .vtk file of blank lines: it has no DATASET."""
    return _write_text(folder / "blank.vtk", "# vtk DataFile Version 4.2\ntitle\nASCII\n" + "\n" * lines)


def attributes_of_one_unwritten_dataset(folder: Path, attributes: int = 60) -> Path:
    """An XDMF whose attributes are all the same 64 MB, none of which is stored: the HDF5 file has kilobytes."""
    with h5py.File(folder / "unwritten.h5", "w") as file:
        file.create_dataset("x", shape=(UNWRITTEN // 8,), dtype="f8")
    item = f'<DataItem DataType="Float" Precision="8" Format="HDF" Dimensions="{UNWRITTEN // 8}">unwritten.h5:/x'
    listed = "".join(
        f'<Attribute Name="a{k}" AttributeType="Scalar" Center="Cell">{item}</DataItem></Attribute>'
        for k in range(attributes)
    )
    return _write_text(folder / "unwritten.xdmf", _xdmf(listed))


def attributes_of_alternating_cells(folder: Path, attributes: int = 2_000, pairs: int = 10_000) -> Path:
    """An XDMF of triangles and quadrilaterals in turn, with 2,000 attributes: each would be cut into 20,000 pieces."""
    corners = " ".join(["4 0 1 2 5 0 1 2 3"] * pairs)
    mixed = f'<DataItem DataType="Int" Precision="8" Format="XML" Dimensions="{9 * pairs}">{corners}</DataItem>'
    item = '<DataItem DataType="Float" Precision="8" Format="XML" Dimensions="1">0</DataItem>'
    listed = "".join(f'<Attribute Name="a{k}" Center="Cell">{item}</Attribute>' for k in range(attributes))
    text = _xdmf(listed)
    begin, end = text.index("<Topology"), text.index("</Topology>")
    return _write_text(folder / "pieces.xdmf", f'{text[:begin]}<Topology TopologyType="Mixed">{mixed}{text[end:]}')


def fields_of_alternating_cells(folder: Path, fields: int = 2_000, pairs: int = 10_000) -> Path:
    """The same as a legacy .vtk file."""
    text = "# vtk DataFile Version 4.2\ntitle\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 4 double\n"
    text += f"0 0 0 1 0 0 1 1 0 0 1 0\nCELLS {2 * pairs} {9 * pairs}\n" + "3 0 1 2\n4 0 1 2 3\n" * pairs
    text += f"CELL_TYPES {2 * pairs}\n" + "5\n9\n" * pairs + f"CELL_DATA {2 * pairs}\nFIELD FieldData {fields}\n"
    return _write_text(folder / "pieces.vtk", text + "".join(f"a{k} 1 1 double\n0\n" for k in range(fields)))


def colours_of_many_columns(folder: Path, count: int = 20_000) -> Path:
    """A legacy .vtk file that announces 20,000 colours of 20,000 components each."""
    text = "# vtk DataFile Version 4.2\ntitle\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 4 double\n"
    text += "0 0 0 1 0 0 1 1 0 0 1 0\nCELLS 1 5\n4 0 1 2 3\nCELL_TYPES 1\n9\n"
    return _write_text(folder / "colours.vtk", text + f"CELL_DATA {count}\nCOLOR_SCALARS c {count}\n" + "0 " * count)


def dimensions_without_end(folder: Path, words: int = 300_000) -> Path:
    """An XDMF array of 300,000 dimensions: their product has millions of digits."""
    item = f'<DataItem Format="XML" Dimensions="{"9999999999999999999 " * words}">0</DataItem>'
    return _write_text(folder / "dimensions.xdmf", _xdmf(f'<Attribute Name="a" Center="Cell">{item}</Attribute>'))


def arrays_at_one_offset(folder: Path, arrays: int = 6_000, size: int = 500_000) -> Path:
    """A .vtu with 6,000 arrays that are all the same 500,000 appended bytes."""
    blob = base64.b64encode(struct.pack("<I", size) + bytes(size)).decode()
    return _write_text(folder / "offset.vtu", _vtu(arrays, f'<AppendedData encoding="base64">_{blob}</AppendedData>'))


def packed_arrays_at_one_offset(folder: Path, arrays: int = 6_000, size: int = 500_000) -> Path:
    """The same, packed: kilobytes."""
    packed = zlib.compress(bytes(size))
    blob = base64.b64encode(struct.pack("<4I", 1, size, 0, len(packed))) + base64.b64encode(packed)
    tail = f'<AppendedData encoding="base64">_{blob.decode()}</AppendedData>'
    text = _vtu(arrays, tail).replace("<VTKFile", '<VTKFile compressor="vtkZLibDataCompressor"', 1)
    return _write_text(folder / "packed.vtu", text)


def packed_in_many_blocks(folder: Path, blocks: int = 60_000, size: int = 64) -> Path:
    """A raw .vtu with one array in very many small blocks: joining them one by one copies all of them every time."""
    packed = zlib.compress(bytes(size))
    blob = struct.pack(f"<{3 + blocks}I", blocks, size, 0, *[len(packed)] * blocks) + packed * blocks
    text = _vtu(1, '<AppendedData encoding="raw">\n_')
    text = text.replace("<VTKFile", '<VTKFile compressor="vtkZLibDataCompressor"', 1).removesuffix("</VTKFile>\n")
    path = folder / "blocks.vtu"
    path.write_bytes(text.encode() + blob + b"\n</AppendedData></VTKFile>\n")
    return path


def unfinished_tags(folder: Path, tags: int = 100_000) -> Path:
    """A .vtu in which <AppendedData begins 100,000 times and never ends."""
    return _write_text(folder / "unfinished.vtu", '<VTKFile type="UnstructuredGrid">' + "<AppendedData " * tags)


def elements_without_end(folder: Path, elements: int = 300_000) -> Path:
    """A .vtu of 300,000 empty elements."""
    return _write_text(folder / "elements.vtu", '<VTKFile type="UnstructuredGrid">' + "<a/>" * elements + "</VTKFile>")


def _vtu(arrays: int, tail: str) -> str:
    listed = "".join(
        f'<DataArray type="Float64" Name="a{k}" format="appended" offset="0"></DataArray>' for k in range(arrays)
    )
    points = (
        '<DataArray type="Float64" Name="Points" NumberOfComponents="3" format="ascii">0 0 0 1 0 0 0 1 0</DataArray>'
    )
    cells = "".join(
        f'<DataArray type="{kind}" Name="{name}" format="ascii">{values}</DataArray>'
        for kind, name, values in (
            ("Int64", "connectivity", "0 1 2"),
            ("Int64", "offsets", "3"),
            ("UInt8", "types", "5"),
        )
    )
    return (
        '<VTKFile type="UnstructuredGrid" version="0.1" byte_order="LittleEndian">'
        f'<UnstructuredGrid><Piece NumberOfPoints="3" NumberOfCells="1"><Points>{points}</Points>'
        f"<Cells>{cells}</Cells><PointData>{listed}</PointData></Piece></UnstructuredGrid>{tail}</VTKFile>\n"
    )


def _xdmf(attributes: str) -> str:
    points = '<DataItem DataType="Float" Precision="8" Format="XML" Dimensions="3 2">0 0 1 0 0 1</DataItem>'
    corners = '<DataItem DataType="Int" Precision="8" Format="XML" Dimensions="1 3">0 1 2</DataItem>'
    return (
        f'<Xdmf Version="3.0"><Domain><Grid Name="g"><Geometry GeometryType="XY">{points}</Geometry>'
        f'<Topology TopologyType="Triangle" NumberOfElements="1">{corners}</Topology>{attributes}'
        "</Grid></Domain></Xdmf>"
    )


def _write_text(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


SHAPES: dict[str, Callable[[Path], Path]] = {
    function.__name__: function
    for function in (
        many_tags_on_many_lines,
        blank_lines_among_names,
        blank_lines_before_a_dataset,
        attributes_of_one_unwritten_dataset,
        attributes_of_alternating_cells,
        fields_of_alternating_cells,
        colours_of_many_columns,
        dimensions_without_end,
        arrays_at_one_offset,
        packed_arrays_at_one_offset,
        packed_in_many_blocks,
        unfinished_tags,
        elements_without_end,
    )
}
