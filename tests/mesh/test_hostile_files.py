"""Small files that ask for much: each is refused, or read, within memory and time that are linear in its size."""

from pathlib import Path

import numpy as np
import pytest
from hostile_files import SHAPES, limit_resources, many_tags_on_many_lines, needs_limits, packed_in_many_blocks
from mesh_files import msh, refusal, refused_text, write_sample

from fluxforge.cli import main
from fluxforge.errors import MeshReadError
from fluxforge.mesh import Mesh, dual, read, read_cell_data
from fluxforge.mesh._read_parts import ALLOWANCE, RATIO

MESSAGES = {
    "many_tags_on_many_lines": "gives 5000 lines 50000 physical tags each",
    "blank_lines_among_names": "section $PhysicalNames announces 1 names and lists 0",
    "blank_lines_before_a_dataset": "has no DATASET",
    "attributes_of_one_unwritten_dataset": "has arrays that take far more memory than a mesh file of its size",
    "attributes_of_alternating_cells": "lists 2000 attributes, which take far more memory than a mesh file of its size",
    "fields_of_alternating_cells": "lists 2000 arrays of 20000 cells, which take far more memory than a mesh file of "
    "its size",
    "colours_of_many_columns": "lists colours of 20000 points or cells, which take far more memory than a mesh file of "
    "its size",
    "dimensions_without_end": "has an array with Dimensions='9999999999999999999 ",
    "arrays_at_one_offset": "has arrays that take far more memory than a mesh file of its size",
    "packed_arrays_at_one_offset": "has arrays that take far more memory than a mesh file of its size",
    "unfinished_tags": "is not well-formed XML",
    "elements_without_end": "has more than 100000 XML elements",
}


@needs_limits
@pytest.mark.parametrize("shape", MESSAGES)
def test_a_small_file_that_asks_for_much_is_refused_at_once(shape: str, tmp_path: Path) -> None:
    path = SHAPES[shape](tmp_path)
    assert sum(item.stat().st_size for item in tmp_path.iterdir()) <= 8_100_000
    with limit_resources():
        message = refusal(path)
    assert MESSAGES[shape] in message
    assert "needs more memory" not in message


@needs_limits
def test_an_array_in_very_many_packed_blocks_is_joined_once(tmp_path: Path) -> None:
    """meshio copies all earlier blocks for each of them: 60,000 times up to 4 MB."""
    path = packed_in_many_blocks(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"PointData", b"CellData"))
    with limit_resources():
        assert len(read(path).cells) == 1
        assert read_cell_data(path) == {}  # the array has 480,000 numbers for one cell


def test_what_a_file_may_ask_for_grows_with_its_size(tmp_path: Path) -> None:
    """Twice the tags on few lines are refused once they exceed the allowance, and not before."""
    lines = 100
    few = many_tags_on_many_lines(tmp_path, tags=10, lines=lines)
    assert len(read(few).cells) == 1
    most = ALLOWANCE // (200 * lines)
    many = many_tags_on_many_lines(tmp_path, tags=most, lines=lines)
    assert len(read(many).cells) == 1
    size = many.stat().st_size
    beyond = 2 * (ALLOWANCE + RATIO * size) // (200 * lines)
    with pytest.raises(MeshReadError, match="physical tags each"):
        read(many_tags_on_many_lines(tmp_path, tags=beyond, lines=lines))


def test_every_shape_ends_the_command_with_exit_code_2_and_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for shape in ("many_tags_on_many_lines", "attributes_of_one_unwritten_dataset", "arrays_at_one_offset"):
        assert main(["mesh", "info", str(SHAPES[shape](tmp_path))]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.strip().splitlines()) == 1


def test_physical_names_that_do_not_fit_their_count(tmp_path: Path) -> None:
    text = msh([(0, 0), (1, 0), (0, 1)], [(2, (0, 1, 2))], names=["inlet", "wall"])
    assert len(read(_write_text(tmp_path, text)).cells) == 1
    assert "announces 3 names and lists 2" in refused_text(tmp_path, text.replace("Names\n2", "Names\n3"))
    long = text.replace('1 1 "inlet"', f'1 {"1" * 5000} "inlet"')
    assert "announces 2 names and lists 1" in refused_text(tmp_path, long)


def test_an_array_by_reference_is_refused_by_name(tmp_path: Path) -> None:
    text = write_sample("xml.xdmf", tmp_path).read_text()
    changed = text.replace("<Topology", '<Attribute><DataItem Reference="/Xdmf//*//*/no"/></Attribute><Topology', 1)
    assert "reference to another array" in refused_text(tmp_path, changed, "a.xdmf")


def test_tags_of_the_dual_graph_are_those_of_a_loop_over_tags(tmp_path: Path) -> None:
    """One sort over all tags: an edge named by two tags keeps the first, one named by none is 'boundary'."""
    points = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
    cells = np.array([[0, 1, 2, 3]])
    boundary = {"b": np.array([[1, 2], [0, 1]]), "nothing": np.empty((0, 2), int), "a": np.array([[1, 0], [3, 0]])}
    graph = dual(Mesh(points, cells, boundary))
    named = {tuple(centre): graph.tags[k] for centre, k in zip(graph.centre.tolist(), graph.tag, strict=True)}
    assert named == {(0.5, 0.0): "b", (1.0, 0.5): "b", (0.0, 0.5): "a", (0.5, 1.0): "boundary"}
    assert graph.tags == ("b", "a", "boundary")


def _write_text(folder: Path, text: str) -> Path:
    path = folder / "a.msh"
    path.write_text(text)
    return path
