"""A damaged checkpoint is skipped with a warning; one of another tree is refused with the name of the leaf."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from run_checkpoints import F, data, flip, pair, record_warnings, same_bits, save_steps, seal, steps, tree
from safetensors.numpy import load_file, save_file

from fluxforge.errors import FluxforgeError, InputError
from fluxforge.run import Checkpoints

DAMAGES: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "a bit of the data": (lambda data, seal: flip(data, -1), "SHA-256 is not the one"),
    "a bit of the header": (lambda data, seal: flip(data, 20), "SHA-256 is not the one"),
    "cut off": (lambda data, seal: os.truncate(data, 50), "SHA-256 is not the one"),
    "empty": (lambda data, seal: os.truncate(data, 0), "SHA-256 is not the one"),
    "no SHA-256": (lambda data, seal: seal.unlink(), "has no SHA-256 beside it"),
    "an empty SHA-256": (lambda data, seal: os.truncate(seal, 0), "SHA-256 is not the one"),
    "another SHA-256": (lambda data, seal: flip(seal, 5), "SHA-256 is not the one"),
    "a folder": (lambda data, seal: (data.unlink(), data.mkdir()), "Is a directory"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_skipped_with_a_warning(damage: str, checkpoints: Checkpoints) -> None:
    save_steps(checkpoints, 1, 2)
    inflict, why = DAMAGES[damage]
    inflict(data(checkpoints, 2), seal(checkpoints, 2))
    watched, told = record_warnings(checkpoints)
    newest = watched.latest(tree(0), fingerprint=F)
    assert newest is not None
    assert newest[0] == 1
    same_bits(newest[1], tree(1))
    (warning,) = told
    assert warning.startswith(f"checkpoint {data(checkpoints, 2)} is damaged (")
    assert why in warning
    assert warning.endswith("falling back to step-000000001.safetensors")


def test_every_damaged_checkpoint_is_reported(tmp_path: Path) -> None:
    told: list[str] = []
    checkpoints = Checkpoints(tmp_path / "c", warn=told.append, keep=3)
    save_steps(checkpoints, 1, 2, 3)
    for step in (2, 3):
        flip(data(checkpoints, step), -1)
    newest = checkpoints.latest(tree(0), fingerprint=F)
    assert newest is not None
    assert newest[0] == 1
    assert len(told) == 2


def test_if_every_checkpoint_is_damaged_loading_is_an_error(checkpoints: Checkpoints) -> None:
    save_steps(checkpoints, 1, 2)
    flip(data(checkpoints, 1), -1)
    seal(checkpoints, 2).unlink()
    watched, told = record_warnings(checkpoints)
    message = r"all 2 checkpoints are damaged \(step-000000002.safetensors: it has no SHA-256 beside it\)"
    with pytest.raises(FluxforgeError, match=message) as caught:
        watched.latest(tree(0), fingerprint=F)
    assert caught.value.exit_code == 1
    assert len(told) == 1
    assert steps(checkpoints) == pair(1, 2) - {"step-000000002.safetensors.sha256"}


def test_a_kill_between_the_sha256_and_its_file_is_not_noticed(checkpoints: Checkpoints) -> None:
    save_steps(checkpoints, 1, 2, 3)
    data(checkpoints, 3).unlink()
    newest = checkpoints.latest(tree(0), fingerprint=F)
    assert newest is not None
    assert newest[0] == 2
    save_steps(checkpoints, 4)
    assert steps(checkpoints) == pair(2, 4)


def test_another_fingerprint_is_refused_by_name(checkpoints: Checkpoints) -> None:
    save_steps(checkpoints, 1, 2)
    with pytest.raises(InputError, match=r"was made with another recipe or architecture") as caught:
        checkpoints.latest(tree(0), fingerprint="0123456789abcdef")
    assert str(data(checkpoints, 2)) in str(caught.value)
    assert "ffffffffffff, " in str(caught.value)
    assert "0123456789ab)" in str(caught.value)


def reseal(path: Path) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name(path.name + ".sha256").write_text(f"{digest}  {path.name}\n")


def forge(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Rewrite the leaves of a file under its own note, and give it the SHA-256 that fits."""
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    arrays = load_file(path)
    change(arrays)
    save_file(arrays, path, header["__metadata__"])
    reseal(path)


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "shape": (
        lambda t: t.update({"['w']": np.zeros((3, 2))}),
        r"\['w'\] should be float64\[2,3\], found float64\[3,2\]",
    ),
    "size": (lambda t: t.update({"['w']": np.zeros(7)}), r"\['w'\] should be float64\[2,3\], found float64\[7\]"),
    "type": (
        lambda t: t.update({"['n']": np.zeros((), np.float32)}),
        r"\['n'\] should be int32\[\], found float32\[\]",
    ),
    "missing": (lambda t: t.pop("['n']"), r"\['n'\] should be int32\[\], found absent"),
    "extra": (lambda t: t.update({"['z']": np.zeros(1)}), r"\['z'\] should be absent, found float64\[1\]"),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_leaf_is_refused_by_name_before_data_are_read(
    what: str, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_steps(checkpoints, 1, 2)
    change, message = FORGERIES[what]
    forge(data(checkpoints, 2), change)
    monkeypatch.setattr("fluxforge.run._archive.fill_template", lambda *_: pytest.fail("data were read"))
    with pytest.raises(InputError, match=f"step-000000002.safetensors: leaf {message}"):
        checkpoints.latest(tree(0), fingerprint=F)


def rewrite_header(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    change(header)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[end:])
    reseal(path)


def note(**fields: Any) -> Callable[[dict[str, Any]], object]:
    def change(header: dict[str, Any]) -> None:
        (name,) = header["__metadata__"]
        header["__metadata__"][name] = json.dumps({**json.loads(header["__metadata__"][name]), **fields})

    return change


HEADERS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a claim of petabytes": (lambda h: h["['w']"].update(shape=[2**50]), "deserializing header"),
    "data beyond the end": (
        lambda h: h["['w']"].update(shape=[2**50], data_offsets=[8, 2**53 + 8]),
        "deserializing header",
    ),
    "no note": (lambda h: h.pop("__metadata__"), "not that of a checkpoint"),
    "a note that is no JSON": (
        lambda h: h["__metadata__"].update({"fluxforge-checkpoint": "{"}),
        "not that of a checkpoint",
    ),
    "a note that is deep": (
        lambda h: h["__metadata__"].update({"fluxforge-checkpoint": "[" * 9999}),
        "not that of a checkpoint",
    ),
    "a note of the wrong types": (note(keys=[]), "not that of a checkpoint"),
    "a note of another step": (note(step=7), "it is of step 7"),
}


@pytest.mark.parametrize("what", HEADERS)
def test_a_forged_header_is_damage(what: str, checkpoints: Checkpoints) -> None:
    save_steps(checkpoints, 1, 2)
    change, why = HEADERS[what]
    rewrite_header(data(checkpoints, 2), change)
    watched, told = record_warnings(checkpoints)
    newest = watched.latest(tree(0), fingerprint=F)
    assert newest is not None
    assert newest[0] == 1
    assert why in told[0]


def test_a_newer_format_is_refused(checkpoints: Checkpoints) -> None:
    save_steps(checkpoints, 1, 2)
    rewrite_header(data(checkpoints, 2), note(format_version=2))
    with pytest.raises(
        InputError, match="has format_version 2, but this version of fluxforge reads at most 1: upgrade"
    ):
        checkpoints.latest(tree(0), fingerprint=F)


def test_a_key_of_another_generator_is_refused(checkpoints: Checkpoints) -> None:
    checkpoints.save(1, {"k": jax.random.key(0, impl="rbg")}, fingerprint=F)
    for template, wanted in (
        (jax.random.key(0, impl="unsafe_rbg"), r"uint32\[4\] \(a unsafe_rbg key\)"),
        (jnp.zeros(4, jnp.uint32), r"uint32\[4\]"),
    ):
        with pytest.raises(InputError, match=rf"leaf \['k'\] should be {wanted}, found uint32\[4\] \(a rbg key\)"):
            checkpoints.latest({"k": template}, fingerprint=F)
