"""Every link from one page of ours to another leads somewhere."""

from pathlib import Path

import pytest
from doc_pages import LINKED, ROOT, anchors, inline_code, links, shape


@pytest.mark.parametrize("page", LINKED, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_links_resolve(page: Path) -> None:
    for target in links(page):
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name}: {target}"


@pytest.mark.parametrize("name", ["docs/developing.md", "CONTRIBUTING.md"])
def test_source_files_named_in_the_prose_exist(name: str) -> None:
    package = ROOT / "src" / "fluxforge"
    files = [code for code in inline_code(ROOT / name) if code.endswith(".py") and " " not in code]
    assert files
    for file in files:
        # A name without a folder belongs to the room of the sentence.
        places = [package / file, ROOT / file, *([] if "/" in file else package.rglob(file))]
        assert any(place.exists() for place in places), f"{name}: {file}"


def test_links_and_anchors_are_found_as_they_are_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Two `words`, no more\n[a](b.md#c) ![d](e.png)\n`[no](link.md)`\n```\n[no](x.md)\n```\n[f](https://g)\n"
    )
    assert links(page) == ["b.md#c", "e.png"]
    assert anchors(page) == {"two-words-no-more"}


def test_a_shape_forgets_numbers_and_times_and_nothing_else() -> None:
    assert shape("L2  1.3e-02,  in 97.6 µs") == shape("L2 4, in 2 s") == "L# #, in #"
    assert shape("order 2") != shape("no order")
