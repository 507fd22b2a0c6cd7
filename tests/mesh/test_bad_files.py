"""Files that are no mesh files, are damaged, or are traps: each is refused in one line that opens with the path."""

import base64
import lzma
import os
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
from mesh_files import HALVES, SQUARE, WRITERS, msh, refusal, refused_text, write_sample

# ---- files that are none -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b" \n\n"])
@pytest.mark.parametrize("name", ["a.msh", "a.vtk", "a.vtu", "a.xdmf", "a.mesh", "a.obj", "a.off"])
def test_an_empty_file(name: str, content: bytes, tmp_path: Path) -> None:
    assert refused_text(tmp_path, content, name) == "is empty"


def test_a_missing_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nowhere.msh") == "does not exist"


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "folder.msh").mkdir()
    assert "folder" in refusal(tmp_path / "folder.msh")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "secret.msh"
    path.write_text(msh(SQUARE, HALVES))
    path.chmod(0)
    assert "cannot be read (Permission denied)" in refusal(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.msh")
    assert refusal(tmp_path / "pipe.msh") == "is not a regular file but a named pipe"


@pytest.mark.parametrize("name", ["mesh.png", "mesh.stl", "mesh"])
def test_an_unknown_extension(name: str, tmp_path: Path) -> None:
    message = refused_text(tmp_path, msh(SQUARE, HALVES), name)
    assert ".msh .vtk .vtu .xdmf" in message
    assert "extension" in message


def test_a_file_under_another_files_extension(tmp_path: Path) -> None:
    text = msh(SQUARE, HALVES)
    for name in ("a.vtk", "a.vtu", "a.xdmf", "a.off", "a.mesh"):
        assert f"is not a .{name[2:]} file" in refused_text(tmp_path, text, name)


@pytest.mark.parametrize("name", ["a.msh", "a.vtk", "a.vtu", "a.xdmf", "a.mesh", "a.obj", "a.off"])
def test_a_picture(name: str, tmp_path: Path) -> None:
    message = refused_text(tmp_path, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", name)
    assert message == f"is not a .{name[2:]} file: it looks like a PNG picture"


def test_a_fluent_mesh(tmp_path: Path) -> None:
    assert "Fluent" in refused_text(tmp_path, '(0 "written by")\n(2 2)\n')


# A .obj file has no counts, so that a missing last part cannot be told from a smaller mesh.
@pytest.mark.parametrize("name", [name for name in WRITERS if not name.endswith(".obj")])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_truncated_file(name: str, share: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = write_sample(name, tmp_path).read_bytes()
    path = tmp_path / f"cut{Path(name).suffix}"
    path.write_bytes(whole[: int(share * len(whole))])
    assert refusal(path, capsys)


def test_a_damaged_hdf5_file_beside_an_xdmf(tmp_path: Path) -> None:
    path = write_sample("hdf.xdmf", tmp_path)
    data = (tmp_path / "hdf.h5").read_bytes()
    (tmp_path / "hdf.h5").write_bytes(data[: len(data) // 2])
    assert "hdf.h5" in refusal(path)


# ---- counts that the file cannot hold ------------------------------------------------------------------------------

HUGE = 10**12


def _in_text(old: str, new: str) -> Callable[[bytes], bytes]:
    def edit(data: bytes) -> bytes:
        assert old.encode() in data
        return data.replace(old.encode(), new.encode(), 1)

    return edit


def _size_after(section: bytes, place: int, width: int = 8) -> Callable[[bytes], bytes]:
    """Overwrite a binary count `place` bytes after the line that opens a section."""

    def edit(data: bytes) -> bytes:
        begin = data.index(section) + len(section) + 1 + place
        count = HUGE if width == 8 else 2**31 - 1
        return data[:begin] + count.to_bytes(width, "little") + data[begin + width :]

    return edit


@pytest.mark.parametrize(
    ("name", "edit", "word"),
    [
        ("msh2-text.msh", _in_text("$Nodes\n9", f"$Nodes\n{HUGE}"), "$Nodes"),
        ("msh2-text.msh", _in_text("$Elements\n9", f"$Elements\n{HUGE}"), "$Elements"),
        ("msh2-binary.msh", _in_text("$Nodes\n9", f"$Nodes\n{HUGE}"), "$Nodes"),
        ("msh2-binary.msh", _in_text("$Elements\n9", f"$Elements\n{HUGE}"), "$Elements"),
        ("msh2-binary.msh", _size_after(b"$Elements\n9", 4, 4), "$Elements"),
        ("msh4-text.msh", _in_text("$Nodes\n4 9", f"$Nodes\n4 {HUGE}"), "$Nodes"),
        ("msh4-text.msh", _in_text("$Nodes\n4 9", f"$Nodes\n{HUGE} 9"), "$Nodes"),
        ("msh4-text.msh", _in_text("1 1 0 1\n", f"1 1 0 {HUGE}\n"), "$Nodes"),
        ("msh4-text.msh", _in_text("$Elements\n4 9", f"$Elements\n{HUGE} 9"), "$Elements"),
        ("msh4-text.msh", _in_text("2 1 2 2\n", f"2 1 2 {HUGE}\n"), "$Elements"),
        ("msh4-text.msh", _in_text("$Entities\n0", f"$Entities\n{HUGE}"), "$Entities"),
        ("msh4-binary.msh", _size_after(b"$Nodes", 0), "$Nodes"),
        ("msh4-binary.msh", _size_after(b"$Nodes", 8), "$Nodes"),
        ("msh4-binary.msh", _size_after(b"$Nodes", 32 + 12), "$Nodes"),
        ("msh4-binary.msh", _size_after(b"$Elements", 0), "$Elements"),
        ("msh4-binary.msh", _size_after(b"$Elements", 32 + 12), "$Elements"),
        ("msh4-binary.msh", _size_after(b"$Entities", 0), "$Entities"),
        ("vtk4-text.vtk", _in_text("POINTS 9", f"POINTS {HUGE}"), "POINTS"),
        ("vtk4-binary.vtk", _in_text("POINTS 9", f"POINTS {HUGE}"), "POINTS"),
        ("vtk4-binary.vtk", _in_text("CELLS 5 23", f"CELLS 5 {HUGE}"), "CELLS"),
        ("vtk5-binary.vtk", _in_text("CELLS 6 18", f"CELLS {HUGE} 18"), "CELLS"),
        ("vtk5-text.vtk", _in_text("CELL_TYPES 5", f"CELL_TYPES {HUGE}"), "CELL_TYPES"),
        ("vtk5-binary.vtk", _in_text("T 1 5 double", "T 1000000 1000000 double"), "T 1000000"),
        ("plain.vtu", _in_text('NumberOfPoints="9"', f'NumberOfPoints="{HUGE}"'), "NumberOfPoints"),
        ("text.vtu", _in_text('NumberOfCells="5"', f'NumberOfCells="{HUGE}"'), "NumberOfCells"),
        ("xml.xdmf", _in_text('Dimensions="9 3"', f'Dimensions="{HUGE} 3"'), str(3 * HUGE)),
        ("xml.xdmf", _in_text('Dimensions="23"', f'Dimensions="{HUGE}"'), str(HUGE)),
        ("hdf.xdmf", _in_text('Dimensions="9 3"', f'Dimensions="{HUGE} 3"'), str(3 * HUGE)),
        ("medit.mesh", _in_text("Vertices\n9", f"Vertices\n{HUGE}"), "Vertices"),
        ("medit.mesh", _in_text("Triangles\n2", f"Triangles\n{HUGE}"), "Triangles"),
    ],
)
def test_a_count_larger_than_the_file(name: str, edit: Callable[[bytes], bytes], word: str, tmp_path: Path) -> None:
    path = write_sample(name, tmp_path)
    path.write_bytes(edit(path.read_bytes()))
    assert word in refusal(path)


def test_an_off_count_larger_than_the_file(tmp_path: Path) -> None:
    assert str(HUGE) in refused_text(tmp_path, f"OFF\n{HUGE} 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", "a.off")


def test_counts_smaller_than_the_file_lose_nothing_silently(tmp_path: Path) -> None:
    path = write_sample("msh2-text.msh", tmp_path)
    for old, new in (("$Nodes\n9", "$Nodes\n8"), ("$Elements\n9", "$Elements\n8")):
        assert "than it announces" in refused_text(tmp_path, path.read_text().replace(old, new))


def test_a_vtk_with_fewer_types_than_cells(tmp_path: Path) -> None:
    text = write_sample("vtk4-text.vtk", tmp_path).read_text()
    cut = text[: text.index("CELL_TYPES")] + "CELL_TYPES 4\n5\n5\n9\n9\n"
    assert refused_text(tmp_path, cut, "a.vtk") == "announces 5 cells and lists 4: it is damaged or cut short"


def test_an_endless_off_header_ends(tmp_path: Path) -> None:
    assert "cut short" in refused_text(tmp_path, "OFF\n# nothing but comments\n", "a.off")


# ---- traps ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("name", ["text.vtu", "xml.xdmf"])
def test_entities_are_refused_before_they_expand(name: str, encoding: str, tmp_path: Path) -> None:
    text = re.sub(r"<\?xml.*?\?>", "", write_sample(name, tmp_path).read_text())
    levels = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 12))
    bomb = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [<!ENTITY l0 "ha">{levels}]>{text}'
    message = refused_text(tmp_path, bomb.encode(encoding), f"bomb{Path(name).suffix}")
    # In UTF-16 the first byte is no "<".
    assert ("document type" in message) if encoding == "utf-8" else ("is not a" in message)


def test_entities_in_nested_documents_are_refused(tmp_path: Path) -> None:
    text = write_sample("xml.xdmf", tmp_path).read_text()
    nested = "<Information>&lt;!DOCTYPE x [&lt;!ENTITY a 'ha'>]>&lt;x>&amp;a;&lt;/x></Information>"
    message = refused_text(tmp_path, text.replace("<Topology", nested + "<Topology", 1), "a.xdmf")
    assert "has '<!' in the text of an element 'Information', where it could declare a document type" in message


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (f'Dimensions="{"1 " * 40}"', "which are 40 dimensions; at most 32 are read"),
        ('Dimensions="9 3.0"', "where whole numbers of at most 19 digits are expected"),
        ("", "with Dimensions='', where whole numbers"),
    ],
)
def test_dimensions_of_an_xdmf_are_some_whole_numbers(given: str, words: str, tmp_path: Path) -> None:
    text = write_sample("xml.xdmf", tmp_path).read_text()
    assert words in refused_text(tmp_path, text.replace('Dimensions="9 3"', given, 1), "a.xdmf")


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    assert "nested" in refused_text(tmp_path, "<Xdmf>" + "<a>" * 100_000, "a.xdmf")


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    ("compressor", "pack"), [("ZLib", zlib.compress), ("LZMA", lambda data: lzma.compress(data, preset=0))]
)
def test_little_data_that_unpacks_to_much(
    compressor: str, pack: Callable[[bytes], bytes], inside: bool, tmp_path: Path
) -> None:
    packed = pack(bytes(100 * 2**20))
    header = struct.pack("<4I", 1, 2**20, 2**20, len(packed))
    if inside:
        body = base64.b64encode(header).decode() + base64.b64encode(packed).decode()
        array = f'<DataArray type="Float64" Name="Points" NumberOfComponents="3" format="binary">{body}</DataArray>'
        tail = b"</VTKFile>"
    else:
        array = '<DataArray type="Float64" Name="Points" NumberOfComponents="3" format="appended" offset="0"/>'
        tail = b'<AppendedData encoding="raw">\n_' + header + packed + b"\n</AppendedData></VTKFile>"
    head = (
        f'<VTKFile type="UnstructuredGrid" version="0.1" compressor="vtk{compressor}DataCompressor">'
        '<UnstructuredGrid><Piece NumberOfPoints="9" NumberOfCells="5">'
        f"<Points>{array}</Points></Piece></UnstructuredGrid>"
    )
    data = head.encode() + tail
    assert len(data) < 200_000
    assert "unpacks to far more" in refused_text(tmp_path, data, "bomb.vtu")


def test_a_signed_header_that_would_walk_backwards(tmp_path: Path) -> None:
    data = write_sample("raw.vtu", tmp_path).read_bytes().replace(b'header_type="UInt32"', b'header_type="Int32"')
    assert "header_type 'Int32'" in refused_text(tmp_path, data, "a.vtu")


def test_an_xdmf_that_points_out_of_its_folder(tmp_path: Path) -> None:
    text = write_sample("hdf.xdmf", tmp_path).read_text()
    for elsewhere in ("../hdf.h5", str(tmp_path / "hdf.h5"), "..", "sub/hdf.h5", "missing.h5"):
        assert "refers to" in refused_text(tmp_path, text.replace("hdf.h5", elsewhere), "a.xdmf")
    (tmp_path / "link.h5").symlink_to(tmp_path / "hdf.h5")
    assert "not a regular file" in refused_text(tmp_path, text.replace("hdf.h5", "link.h5"), "a.xdmf")


def test_an_xdmf_that_reads_any_file_as_numbers(tmp_path: Path) -> None:
    text = write_sample("xml.xdmf", tmp_path).read_text()
    assert "'Binary'" in refused_text(tmp_path, text.replace('Format="XML"', 'Format="Binary"'), "a.xdmf")


def test_hdf5_data_that_lie_elsewhere_or_outgrow_the_file(tmp_path: Path) -> None:
    path = write_sample("hdf.xdmf", tmp_path)
    with h5py.File(tmp_path / "hdf.h5", "a") as file:
        file.move("data0", "moved")
        file["data0"] = h5py.ExternalLink("other.h5", "/data0")
    assert "is a link" in refusal(path)
    with h5py.File(tmp_path / "hdf.h5", "a") as file:
        del file["data0"]
        file.create_dataset("data0", shape=(10**9, 3), dtype="f8", chunks=(1000, 3))
    path.write_text(path.read_text().replace('Dimensions="9 3"', f'Dimensions="{10**9} 3"'))
    assert "damaged" in refusal(path)


def test_a_vtu_in_pieces_is_not_read_in_part(tmp_path: Path) -> None:
    text = write_sample("text.vtu", tmp_path).read_text()
    piece = text[text.index("<Piece") : text.index("</Piece>") + len("</Piece>")]
    assert "2 pieces" in refused_text(tmp_path, text.replace(piece, piece + piece), "a.vtu")
