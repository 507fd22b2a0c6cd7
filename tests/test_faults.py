"""The planted faults can be planted: each text stands once where it is replaced, and the tests named are there."""

import pytest

from faults import FAULTS, ROOT, Fault


def test_there_are_thirty() -> None:
    assert len(FAULTS) >= 30
    assert len({fault.file.split("/")[0] for fault in FAULTS}) >= 15  # rooms


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}: {fault.old[:30]}")
def test_a_fault_changes_one_place(fault: Fault) -> None:
    assert (ROOT / "src/fluxforge" / fault.file).read_text().count(fault.old) == 1
    assert fault.new != fault.old
    assert all((ROOT / "tests" / each).exists() for each in fault.tests.split())
