"""Ranges that a recipe's numbers must lie in; the schema refuses what lies outside, naming field, value and range.

The upper ends are far beyond any run that ends: they are there so that a slip of the keyboard is told at once.
"""

from typing import Annotated, TypeAlias

from msgspec import Meta

Steps: TypeAlias = Annotated[int, Meta(ge=1, le=100_000_000)]
Batch: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000)]
MeshCount: TypeAlias = Annotated[int, Meta(ge=1, le=100_000)]
Cells: TypeAlias = Annotated[int, Meta(ge=8, le=100_000)]
# A length of time or space in units of the cell, a Fourier number, a diffusivity: α Δt/δ² stays a number of float32.
Positive: TypeAlias = Annotated[float, Meta(gt=0, le=1e6)]
# A parameter of an equation, of either sign.
LARGEST_PARAMETER = 1e6
Signed: TypeAlias = Annotated[float, Meta(ge=-LARGEST_PARAMETER, le=LARGEST_PARAMETER)]
# A weight of a loss, a norm of a gradient.
Weight: TypeAlias = Annotated[float, Meta(ge=0, le=1e9)]
Noise: TypeAlias = Annotated[float, Meta(ge=0, le=100)]
Fraction: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Seed: TypeAlias = Annotated[int, Meta(ge=0, lt=2**31)]
# A range [low, high] that values are drawn from.
Range: TypeAlias = tuple[Positive, Positive]
