"""Fixtures that the tests of studies share."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def mesh_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.MonkeyPatch]:
    """A cache of meshes for the tests of one file; the patch that sets it, for further patches of the same duration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLUXFORGE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield patch
