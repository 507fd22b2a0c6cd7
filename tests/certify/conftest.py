"""Problems that the tests of both theorems share."""

import pytest
from bound_cases import DT, KEY, MESHES

from fluxforge.certify import bounds
from fluxforge.data import Problem


@pytest.fixture(scope="module")
def problems() -> dict[str, Problem]:
    return bounds.roomy_problems(MESHES, KEY, count=64, dt=DT)


@pytest.fixture(scope="module")
def readings() -> dict[str, Problem]:
    return bounds.draw_readings(KEY, dt=DT, graphs=40)
