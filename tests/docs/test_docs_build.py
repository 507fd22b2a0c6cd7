"""`make docs`: without a warning, without a network, and with all that the package exports and the terminal offers."""

import re
import shutil
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest
from doc_pages import ROOT

import fluxforge
from fluxforge.cli import main
from fluxforge.cli._arguments import ORDER

LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class Loads(HTMLParser):
    """What a browser fetches to show a page; links that a reader may follow are not among it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if (address := dict(attrs).get(LOADED.get(tag, ""))) is not None:
            self.found.append(address)


def from_elsewhere(text: str) -> list[str]:
    return [address for address in Loads(text).found if re.match(r"(https?:)?//", address)]


def test_the_pages_build_and_are_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A copy, since the pages of the packages are written beside the others.
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("_build", "api"))
    (tmp_path / "results").symlink_to(ROOT / "results")
    site = tmp_path / "site"
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        # The lists of contents beside the pages are copied for every page of the site: without objects, in less time.
        "-D",
        "toc_object_entries=0",
        "-b",
        "html",
        str(tmp_path / "docs"),
        str(site),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    pages = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    check_offline(site, pages)
    check_formulas(pages)
    check_names(pages)
    check_commands(unescape(re.sub(r"<[^>]*>", "", pages["cli.html"])), capsys)


def check_offline(site: Path, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        assert not from_elsewhere(text), name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


def check_formulas(pages: dict[str, str]) -> None:
    assert pages["mathematics.html"].count("<math ") > 50
    assert "<mfrac>" in pages["verification.html"]
    assert not any(re.search("mathjax|katex", " ".join(Loads(text).found).lower()) for text in pages.values())


def check_names(pages: dict[str, str]) -> None:
    for name in fluxforge.__all__:
        assert f"ff.{name}" in pages["api.html"], name
    listed = [Path(page).name.removesuffix(".html") for page in pages if page.startswith("api/")]
    subpackages = {f"fluxforge.{path.parent.name}" for path in Path(fluxforge.__file__).parent.glob("*/__init__.py")}
    assert subpackages <= set(listed)
    for package in listed:
        names = import_module(package).__all__
        missing = [name for name in names if f"{package}.{name}" not in pages[f"api/{package}.html"]]
        assert not missing, f"{package}: {missing}"


def check_commands(shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every option of every command's own help stands in its section."""
    for name in ORDER:
        assert main([name, "--help"]) == 0
        section = shown.partition(f"\nfluxforge {name}¶")[2] or shown.partition(f"fluxforge {name}")[2]
        for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", capsys.readouterr().out)) - {"--help"}:
            assert option in section, f"{name} {option}"


def test_what_a_browser_would_fetch_is_noticed() -> None:
    page = (
        '<a href="https://a.b"></a><script src="https://c.d/e.js"></script><link href="//f.g/h.css"><img src="i.png">'
    )
    assert from_elsewhere(page) == ["https://c.d/e.js", "//f.g/h.css"]
