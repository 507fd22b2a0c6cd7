"""What experiments share."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def mesh_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.MonkeyPatch]:
    """A cache of meshes of its own for a file's tests, and what patches for as long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLUXFORGE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield patch
