"""The same data give the same bytes, whatever process draws them."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DRAW = """
import sys
from pathlib import Path
import fluxforge as ff
from fluxforge.report import panels, save_figures
from fluxforge.stepping import simulate, write_run
folder = Path(sys.argv[1])
mesh = ff.mesh.jittered(3)
for suffix in ("png", "svg", "pdf"):
    ff.mesh.mesh_picture(mesh, folder / f"mesh.{suffix}")
write_run(simulate("euler", mesh, initial="x*y", steps=1), folder / "run", gif=True)
figure, (left, right) = panels(2)
left.loglog([1, 10], [1, 100], "o-", label="order 2")
left.legend()
right.contourf([[0, 1], [2, 3]], levels=[0, 1, 2])
save_figures({"plot": figure}, folder)
"""
DRAWN = (".png", ".svg", ".pdf", ".gif")


def drawn(folder: Path, seed: str) -> dict[str, str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    environment.pop("SOURCE_DATE_EPOCH", None)
    subprocess.run([sys.executable, "-c", DRAW, str(folder)], env=environment, check=True, timeout=300)
    files = sorted(path for path in folder.rglob("*") if path.suffix in DRAWN)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.slow
def test_figures_are_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    first, second = (drawn(tmp_path / seed, seed) for seed in ("1", "2"))
    assert json.dumps(first, indent=1) == json.dumps(second, indent=1)
    assert {Path(name).suffix for name in first} == set(DRAWN)
    assert {"mesh.svg", "plot.svg", "run/final.png", "run/T.gif"} <= set(first)
