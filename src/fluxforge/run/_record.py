"""Base class and types of all records of a run's document."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

# JSON has no infinity and no NaN: a number that was not finite is null, and None in a record.
Number: TypeAlias = float | None
Numbers: TypeAlias = Mapping[str, Number]
# A document: plain JSON values.
Document: TypeAlias = Mapping[str, Any]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a document; fields that have their default are absent from it."""
