"""The variants of `make portable`: which a processor can run, what they set, and that a failure is told."""

from pathlib import Path

import pytest

import machine
import portable
from portable import Variant

SETS = {
    "sse4_2": ["SSE4_2"],
    "sse4_2 avx avx2 fma": ["SSE4_2", "AVX", "AVX2"],
    "sse4_2 avx avx2 fma avx512f avx512dq avx512bw avx512vl avx512cd": ["SSE4_2", "AVX", "AVX2", "AVX512"],
    "": [],
}


@pytest.mark.parametrize("flags", SETS)
def test_instruction_sets_are_read_from_the_flags(flags: str) -> None:
    assert machine.instruction_sets(set(flags.split())) == SETS[flags]


def test_the_processor_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nmodel name\t: A: B\nflags\t\t: fpu avx\n\nprocessor\t: 1\nflags\t: sse\n")
    assert machine.cpu_information(file) == {"processor": "0", "model name": "A: B", "flags": "fpu avx"}
    assert machine.cpu_information(tmp_path / "none") == {}


def test_the_head_of_a_run_names_what_decides_the_last_digits() -> None:
    told = "\n".join(machine.describe())
    for word in ("processor: ", "instruction sets: ", "python 3.", "numpy ", "jax ", "jaxlib ", "BLAS cores"):
        assert word in told


def test_a_variant_that_the_processor_lacks_is_left_out() -> None:
    fits = {variant.name for variant in portable.variants() if variant.runs_on(["SSE4_2", "AVX", "AVX2"])}
    assert {"native", "threads=2", "xla=AVX2", "openblas=Zen", "xla=SSE4_2,openblas=Haswell"} <= fits
    assert not any("AVX512" in name or "SkylakeX" in name for name in fits)
    assert len(fits) == 13


def test_a_variant_adds_to_the_flags_that_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=there")
    environment = Variant("AVX2", "Zen", 2).environment()
    assert environment["XLA_FLAGS"] == "--xla_dump_to=there --xla_cpu_max_isa=AVX2"
    assert environment["OPENBLAS_CORETYPE"] == "Zen"
    assert environment["FLUXFORGE_TEST_THREADS"] == "2"


def test_tests_that_are_named_replace_the_numerical_rooms() -> None:
    assert "tests/certify" in portable.pytest_arguments(["-x"], everything=False)
    assert "tests/certify" not in portable.pytest_arguments(["tests/mesh/test_dual.py::test_x"], everything=False)
    assert portable.pytest_arguments(["-x"], everything=True)[-1] == "-x"
    assert "tests/certify" not in portable.pytest_arguments(["-x"], everything=True)


def test_an_unknown_variant_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert portable.main(["--variant", "xla=Z80"]) == 2
    assert capsys.readouterr().err.startswith("there is no variant 'xla=Z80'; there are: native ")


def test_a_failure_under_a_variant_is_told_and_ends_with_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variant reaches the tests' process: what is asked there fails under one and passes under the other."""
    monkeypatch.setenv("XLA_FLAGS", "")  # this test may itself run under a variant
    file = tmp_path / "test_it.py"
    lines = ["import os", "def test_it(): assert 'max_isa' not in os.environ['XLA_FLAGS']", "def test_two(): pass"]
    file.write_text("\n".join(lines), encoding="utf-8")
    words = ["--variant", "native", "--variant", "xla=SSE4_2", "-n0", "-q", "-p", "no:cacheprovider", str(file)]
    assert portable.main(words) == 1
    *_, native, limited = capsys.readouterr().out.rstrip().splitlines()
    assert native.split()[:3] == ["native", "2", "0"]
    assert limited.split()[:3] == ["xla=SSE4_2", "1", "1"]
    assert limited.endswith("failed")
