"""The tables in a JSON document, for pages and CSV files."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fluxforge.run._record import Document

# A row of a table: values by the name of the column.
Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A table for readers: its caption, the names of its columns, and rows of text."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(document: Document) -> dict[str, list[Row]]:
    """The tables of a document by their path in it, like `networks` or `direct/θ = 1/rows`.

    A table is a list of records, a record of records, or a record of lists of one length.
    """
    return {where: rows for where, rows in _find_tables(document, ()) if rows}


def table_csv(rows: Sequence[Row], columns: Iterable[str] = ()) -> str:
    """A table as CSV text: the given columns first, then all others that occur in a row."""
    columns = list(dict.fromkeys((*columns, *(name for row in rows for name in row))))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _find_tables(value: Any, where: tuple[str, ...]) -> Iterator[tuple[str, list[Row]]]:
    if isinstance(value, Mapping):
        yield from _find_in_mapping(value, where)
    elif _is_list(value) and where:
        records = [each for each in value if isinstance(each, Mapping)]
        if records and len(records) == len(value):
            yield "/".join(where), [_flatten(each) for each in records]
            for k, each in enumerate(records):
                deeper = {name: inner for name, inner in each.items() if _is_table(inner)}
                yield from _find_tables(deeper, (*where, str(k)))


def _find_in_mapping(value: Document, where: tuple[str, ...]) -> Iterator[tuple[str, list[Row]]]:
    records = {name: each for name, each in value.items() if isinstance(each, Mapping) and _flatten(each)}
    if where and len(records) > 1 and len(records) == len(value):
        yield "/".join(where), [{"name": name, **_flatten(each)} for name, each in records.items()]
    columns = {name: each for name, each in value.items() if _is_column(each)}
    if where and columns and len({len(each) for each in columns.values()}) == 1:
        yield "/".join(where), [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for name, each in value.items():
        yield from _find_tables(each, (*where, str(name)))


def _flatten(record: Document) -> Row:
    """Numbers and texts of a record by name; those of a nested record under names `outer.inner`, lists left out."""
    row: Row = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            row |= {f"{name}.{inner}": each for inner, each in _flatten(value).items()}
        elif not _is_list(value):
            row[name] = value
    return row


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_table(value: Any) -> bool:
    return _is_list(value) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _is_column(value: Any) -> bool:
    return _is_list(value) and len(value) > 1 and not any(_is_list(each) or isinstance(each, Mapping) for each in value)
