"""Equations of users, for tests: as the TOML they would write."""

from pathlib import Path

from fluxforge import pde

FISHER = """
name = "fisher"
summary = "spread of a population that grows to 1"
diffusion = "D"
reaction = "r*u*(1 - u)"
unknown_units = {}

[parameters.D]
meaning = "diffusivity"
units = { length = 2, time = -1 }
default = 0.001

[parameters.r]
meaning = "rate of growth"
units = { time = -1 }
default = 1.0
"""
# Data of this one look much like Fisher's, and are not.
CUBIC = FISHER.replace('"fisher"', '"cubic"').replace("(1 - u)", "(1 - u**2)")
# Transport, diffusion that depends on the unknown, a capacity, and parameters of cells and faces, all at once.
MIXED = """
name = "mixed"
capacity = "c"
transported = "u**2/2"
velocity = "a"
diffusion = "k*(1 + u**2)"
reaction = "-b*u**3"
[parameters.c]
[parameters.a]
rank = "vector"
[parameters.k]
where = "cell"
[parameters.b]
"""
ADVECTION = """
name = "advection"
transported = "u"
velocity = "a"
[parameters.a]
rank = "vector"
meaning = "velocity"
"""


def written(text: str, folder: Path, name: str = "own.toml") -> Path:
    """The equation's file in a folder."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def equation(text: str, folder: Path) -> pde.Equation:
    """The equation, read from a file."""
    return pde.find(written(text, folder))
