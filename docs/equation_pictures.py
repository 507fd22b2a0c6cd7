"""Draws docs/equation-*.png: the first simulation that each page of an equation shows, on 1,600 cells instead of 200.

Run it as `python docs/equation_pictures.py`, or with the names of some equations.
"""

import re
import shlex
import sys
import tempfile
from pathlib import Path

from PIL import Image

from fluxforge.cli import main as run_command

HERE = Path(__file__).parent
WIDTH, COLOURS = 480, 96  # of the pictures, so that each takes some tens of kilobytes


def draw(page: Path, folder: Path) -> None:
    """Run the first `fluxforge simulate` of a page on a finer mesh and shrink the picture it writes."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    command = re.search(r"^\$ fluxforge (simulate .*)$", text, re.MULTILINE)
    assert command is not None, page
    words = shlex.split(command[1].replace("m.msh", str(folder / "m.msh")))
    words = words[: words.index("-o")] if "-o" in words else words
    if code := run_command([*words, "-o", str(folder / page.stem)]):
        sys.exit(code)
    with Image.open(folder / page.stem / "final.png") as picture:
        height = round(picture.height * WIDTH / picture.width)
        small = picture.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
    small.quantize(COLOURS).save(page.with_suffix(".png"), optimize=True)


def main(names: list[str]) -> None:
    """Draw the pictures of some equations, or of all."""
    pages = [HERE / f"equation-{name}.md" for name in names] or sorted(HERE.glob("equation-*.md"))
    with tempfile.TemporaryDirectory() as folder:
        run_command(["mesh", "square", "--cells", "1600", "-o", str(Path(folder) / "m.msh")])
        for page in pages:
            draw(page, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
