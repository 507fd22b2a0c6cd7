"""Ranges that a recipe's numbers must lie in; the schema refuses what lies outside, naming the field."""

from typing import Annotated, TypeAlias

from msgspec import Meta

Count: TypeAlias = Annotated[int, Meta(ge=1)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
NotNegative: TypeAlias = Annotated[float, Meta(ge=0)]
Fraction: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Seed: TypeAlias = Annotated[int, Meta(ge=0, lt=2**31)]
# A range [low, high] that values are drawn from.
Range: TypeAlias = tuple[Positive, Positive]
