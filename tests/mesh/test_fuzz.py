"""Damaged files at random: a valid mesh or a typed error comes out, nothing else, and nothing is printed."""

import random
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hostile_files import SHAPES, limit_resources, needs_limits
from mesh_files import WRITERS, write_sample

from fluxforge.errors import MeshReadError
from fluxforge.mesh import Mesh, read
from fluxforge.mesh._from_arrays import build_mesh

MUTATIONS_PER_FORMAT = 25
SWOLLEN_PER_FORMAT = 6
MOST_BYTES = 100_000_000
NUMBERS = [b"99999999999", b"-1", b"nan", b"1e308", b"0", b"4294967296", b"-9223372036854775808", b"inf", b"3.5"]


def flip_bytes(data: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 20])):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged)


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def repeat_line(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    k = rng.randrange(len(lines))
    return b"\n".join([*lines[:k], lines[k], *lines[k:]])


def drop_line(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def replace_number(data: bytes, rng: random.Random) -> bytes:
    number = rng.choice(list(re.finditer(rb"-?\d+(\.\d+)?(e[-+]?\d+)?", data)))
    return data[: number.start()] + rng.choice(NUMBERS) + data[number.end() :]


def overwrite_count(data: bytes, rng: random.Random) -> bytes:
    place, width = rng.randrange(len(data) - 8), rng.choice([4, 8])
    value = rng.choice([0, 7, 2**31 - 1, 2**32 - 1, 2**63 - 1, 10**12]) % 2 ** (8 * width)
    return data[:place] + value.to_bytes(width, rng.choice(["little", "big"])) + data[place + width :]


def swell(data: bytes, rng: random.Random) -> bytes:
    """One line, one XML element or one number, repeated thousands of times."""
    pattern = rng.choice([rb"[^\n]*\n", rb"<(\w+)[^>]*>[^<]*</\1>", rb"<[^>]*/?>", rb"[-\d.e]+ "])
    pieces = list(re.finditer(pattern, data)) or list(re.finditer(rb"(?s).{1,30}", data))
    piece = rng.choice(pieces)
    return data[: piece.end()] + piece[0] * rng.choice([2_000, 20_000]) + data[piece.end() :]


def scatter_blanks(data: bytes, rng: random.Random) -> bytes:
    """Blank lines, tabs or unfinished tags by the thousand."""
    place = rng.randrange(len(data))
    return data[:place] + rng.choice([b"\n", b"\n\t", b" ", b"<AppendedData ", b"$"]) * 20_000 + data[place:]


SWELLING = [swell, swell, scatter_blanks]
MUTATIONS = [flip_bytes, cut, repeat_line, drop_line, replace_number, replace_number, overwrite_count]


def read_or_refuse(path: Path) -> Mesh | str:
    try:
        return read(path)
    except MeshReadError as error:
        return str(error)


@pytest.mark.parametrize("name", WRITERS)
def test_a_damaged_file_is_a_mesh_or_a_typed_error(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(name)
    whole = write_sample(name, tmp_path).read_bytes()
    read(tmp_path / name)
    tracemalloc.start()
    for k in range(MUTATIONS_PER_FORMAT):
        path = tmp_path / f"damaged-{k}{Path(name).suffix}"
        path.write_bytes(rng.choice(MUTATIONS)(whole, rng))
        outcome = read_or_refuse(path)
        if isinstance(outcome, Mesh):
            again = build_mesh(outcome.points, outcome.cells, boundary=outcome.boundary, origin="again")
            assert np.array_equal(again.cells, outcome.cells)
        else:
            assert outcome.startswith(f"{path}: ")
            assert "\n" not in outcome
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST_BYTES
    assert capsys.readouterr() == ("", "")


@needs_limits
@pytest.mark.parametrize("name", WRITERS)
def test_a_swollen_file_is_a_mesh_or_a_typed_error(name: str, tmp_path: Path) -> None:
    """Time that grows with the square of the file would take hours here: the processor's time is limited."""
    rng = random.Random(f"swollen {name}")
    whole = write_sample(name, tmp_path).read_bytes()
    for _ in range(SWOLLEN_PER_FORMAT):
        path = tmp_path / f"swollen{Path(name).suffix}"
        path.write_bytes(rng.choice(SWELLING)(whole, rng))
        with limit_resources():
            outcome = read_or_refuse(path)
        assert isinstance(outcome, Mesh) or outcome.startswith(f"{path}: ")
        assert "needs more memory" not in str(outcome)


@needs_limits
@pytest.mark.parametrize("shape", SHAPES)
def test_a_damaged_hostile_file_is_a_mesh_or_a_typed_error(shape: str, tmp_path: Path) -> None:
    rng = random.Random(shape)
    path = SHAPES[shape](tmp_path)
    whole = path.read_bytes()
    for mutation in (flip_bytes, cut):
        path.write_bytes(mutation(whole, rng))
        with limit_resources():
            outcome = read_or_refuse(path)
        assert isinstance(outcome, Mesh) or outcome.startswith(f"{path}: ")
        assert "needs more memory" not in str(outcome)


def test_noise_under_every_extension_is_a_typed_error(tmp_path: Path) -> None:
    rng = random.Random(0)
    for extension in sorted({Path(name).suffix for name in WRITERS} | {".off"}):
        for k in range(10):
            path = tmp_path / f"noise-{k}{extension}"
            path.write_bytes(rng.randbytes(rng.randrange(1, 400)))
            with pytest.raises(MeshReadError):
                read(path)
