"""VTK's .vtu files in every way in which their arrays can be stored; all hold the same mesh."""

import base64
import itertools
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

import meshio
import numpy as np
import pytest
from mesh_files import POINTS, QUADRILATERALS, TRIANGLES, refused_text, same, write_sample

from fluxforge.mesh import read, read_cell_data

PACKERS: dict[str, Callable[[bytes], bytes]] = {"ZLib": zlib.compress, "LZMA": lzma.compress}
ARRAYS: dict[str, tuple[str, np.ndarray]] = {
    "Points": ("Float64", POINTS.ravel()),
    "connectivity": ("Int32", np.concatenate([TRIANGLES.ravel(), QUADRILATERALS.ravel()])),
    "offsets": ("UInt64", np.cumsum([3, 3, 4, 4, 4])),
    "types": ("UInt8", np.array([5, 5, 9, 9, 9])),
    "T": ("Float32", np.arange(5.0) / 2),
    "pair": ("Int16", np.arange(10)),
}
CODES = {"Float64": "f8", "Float32": "f4", "Int32": "i4", "UInt64": "u8", "UInt8": "u1", "Int16": "i2"}


class Layout:
    """How a file stores its arrays: `place` is inline, base64 (appended) or raw (appended)."""

    def __init__(self, place: str, packer: str | None, header: str, order: str, *, together: bool = True) -> None:
        self.place, self.packer, self.together = place, packer, together
        self.header, self.order = header, order
        self.word = np.dtype(("<" if order == "LittleEndian" else ">") + ("u4" if header == "UInt32" else "u8"))

    def stored(self, content: bytes, block: int = 40) -> bytes:
        """An array's bytes with its header, packed in blocks of so many bytes."""
        encode = bytes if self.place == "raw" else base64.b64encode
        if self.packer is None:
            head = np.array([len(content)], self.word).tobytes()
            return encode(head + content) if self.together else encode(head) + encode(content)
        pieces = [content[k : k + block] for k in range(0, len(content), block)]
        packed = [PACKERS[self.packer](piece) for piece in pieces]
        last = len(pieces[-1]) % block
        words = np.array([len(pieces), block, last, *map(len, packed)], self.word)
        return encode(words.tobytes()) + encode(b"".join(packed))

    def text(self) -> bytes:
        """The whole file."""
        appended, elements = b"", {}
        for name, (kind, values) in ARRAYS.items():
            stored = self.stored(values.astype(self.word.byteorder.replace("=", "<") + CODES[kind]).tobytes())
            columns = {"Points": 3, "pair": 2}.get(name, 1)
            head = f'<DataArray type="{kind}" Name="{name}" NumberOfComponents="{columns}" '.encode()
            if self.place == "inline":
                elements[name] = head + b'format="binary">\n' + stored + b"\n</DataArray>"
            else:
                elements[name] = head + f'format="appended" offset="{len(appended)}"/>'.encode()
                appended += stored
        packer = f' compressor="vtk{self.packer}DataCompressor"' if self.packer else ""
        tail = b"" if self.place == "inline" else f'<AppendedData encoding="{self.place}">\n_'.encode()
        return (
            f'<VTKFile type="UnstructuredGrid" version="1.0" byte_order="{self.order}" header_type="{self.header}"'
            f'{packer}><UnstructuredGrid><Piece NumberOfPoints="9" NumberOfCells="5"><Points>'.encode()
            + elements["Points"]
            + b"</Points><Cells>"
            + b"".join(elements[name] for name in ("connectivity", "offsets", "types"))
            + b"</Cells><CellData>"
            + elements["T"]
            + elements["pair"]
            + b"</CellData></Piece></UnstructuredGrid>"
            + (tail + appended + b"\n</AppendedData>" if tail else b"")
            + b"</VTKFile>\n"
        )


@pytest.mark.parametrize("place", ["inline", "base64", "raw"])
@pytest.mark.parametrize("packer", [None, *PACKERS])
def test_every_layout_holds_the_same_mesh(place: str, packer: str | None, tmp_path: Path) -> None:
    expected = read(write_sample("plain.vtu", tmp_path))
    path = tmp_path / "a.vtu"
    for header, order in itertools.product(("UInt32", "UInt64"), ("LittleEndian", "BigEndian")):
        path.write_bytes(Layout(place, packer, header, order).text())
        assert same(read(path), expected)
        fields = read_cell_data(path)
        assert list(fields) == ["T"]  # a pair of numbers is no scalar
        assert np.array_equal(fields["T"], np.arange(5.0) / 2)


@pytest.mark.parametrize("place", ["inline", "base64"])
@pytest.mark.parametrize("header", ["UInt32", "UInt64"])
def test_a_length_that_is_encoded_by_itself(place: str, header: str, tmp_path: Path) -> None:
    path = tmp_path / "a.vtu"
    path.write_bytes(Layout(place, None, header, "LittleEndian", together=False).text())
    assert same(read(path), read(write_sample("plain.vtu", tmp_path)))


def test_lines_carry_the_tags_of_the_cell_data(tmp_path: Path) -> None:
    blocks = [("line", np.array([[0, 3], [3, 6]])), ("triangle", TRIANGLES), ("quad", QUADRILATERALS)]
    tags = [np.array([7, 8]), np.zeros(2, int), np.zeros(3, int)]
    meshio.vtu.write(tmp_path / "a.vtu", meshio.Mesh(POINTS, blocks, cell_data={"cell_tags": tags}))
    boundary = read(tmp_path / "a.vtu").boundary
    assert {tag: sorted(map(sorted, edges.tolist())) for tag, edges in boundary.items()} == {
        "tag-7": [[0, 3]],
        "tag-8": [[3, 6]],
    }


def test_cells_of_other_kinds_are_named(tmp_path: Path) -> None:
    meshio.vtu.write(tmp_path / "a.vtu", meshio.Mesh(POINTS, [("tetra", np.array([[0, 1, 2, 3]]))]))
    message = refused_text(tmp_path, (tmp_path / "a.vtu").read_bytes(), "b.vtu")
    assert "1 of type 'tetra'" in message
    text = write_sample("text.vtu", tmp_path).read_text()
    assert "unknown type (99)" in refused_text(tmp_path, text.replace("5\n5\n9\n9\n9", "5\n5\n9\n9\n99"), "b.vtu")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('offset="0"', 'offset="-1"', "offset '-1', which is not a whole number"),
        ('offset="0"', 'offset="99999"', "is damaged or cut short"),
        ('format="appended"', 'format="binhex"', "format 'binhex'"),
        ('type="Float64"', 'type="Float80"', "type 'Float80', which is unknown"),
        ('NumberOfComponents="3"', 'NumberOfComponents="7"', "27 numbers in '7' components"),
        ('NumberOfComponents="3"', 'NumberOfComponents="9"', "NumberOfPoints=9 and lists points of shape (3, 9)"),
        ('Name="offsets"', 'Name="ofsets"', "has no array 'offsets'"),
        ('NumberOfCells="5"', 'NumberOfCells="4"', "NumberOfCells=4 and lists 5 offsets"),
        ("vtkZLib", "vtkLZ4", "is compressed with 'vtkLZ4DataCompressor'"),
    ],
)
def test_what_cannot_be_read_is_named(old: str, new: str, words: str, tmp_path: Path) -> None:
    text = Layout("raw", "ZLib", "UInt32", "LittleEndian").text()
    assert old.encode() in text
    assert words in refused_text(tmp_path, text.replace(old.encode(), new.encode(), 1), "a.vtu")
