"""Markdown pages as what can be checked of them: fenced blocks, inline code, links and headings."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKED = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "results" / "README.md"]

_FENCE = re.compile(r"^(```+)(.*?)\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"`([\w.-]+)`:\s*\Z")
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_QUOTED = re.compile(r"^`(fluxforge verify [^`]+)` begins:\n\n> (.+)$", re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """What stands between two fences; `file` where the line before ends in its name and a colon."""

    line: int
    language: str
    text: str
    file: str | None
    follows: bool  # with nothing between it and the block before


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order; what Sphinx fills in is left out."""
    text, found, end = page.read_text(encoding="utf-8"), [], 0
    for fence in _FENCE.finditer(text):
        before = text[end : fence.start()]
        name = _NAMED.search(before)
        line = text.count("\n", 0, fence.start()) + 1
        if not fence[2].startswith("{"):
            found.append(Block(line, fence[2].strip(), fence[3], name[1] if name else None, not before.strip()))
        end = fence.end()
    return found


def prose(page: Path) -> str:
    """The page without its blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def inline_code(page: Path) -> list[str]:
    """What stands between backticks in the prose."""
    return [" ".join(code.split()) for code in _CODE.findall(prose(page))]


def links(page: Path) -> list[str]:
    """The targets of links and pictures that are not addresses."""
    found = _LINK.findall(_CODE.sub("", prose(page)))
    return [target for target in found if "://" not in target and not target.startswith("mailto:")]


def quoted_certificates(page: Path) -> list[tuple[str, str]]:
    """Commands in the prose with the first line of the certificate that follows as a quotation."""
    return _QUOTED.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """The headings as they are linked to: lower case, hyphens for spaces, no punctuation."""
    titles = (title.replace("`", "").lower() for title in _HEADING.findall(prose(page)))
    return {re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in titles}


def shape(line: str) -> str:
    """A line with its numbers, their units of time and its spaces taken out: what may not differ between two runs."""
    numbers = re.sub(r"\b[0-9a-f]{16}\b|[-−]?\d+([.,]\d+)*(e[-+]?\d+)?( ?[nµm]?s\b)?", "#", line)
    return " ".join(numbers.split())
