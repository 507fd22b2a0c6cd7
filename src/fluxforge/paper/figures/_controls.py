"""The table of the controls: every decoy with the verdict that it got and those that it may get."""

from collections.abc import Mapping
from typing import Any

from fluxforge.report import Table, rounded

COLUMNS = ("decoy", "what it is", "verdict", "explained", "formula", "allowed", "outcome", "seconds")


def controls_table(result: Mapping[str, Any]) -> Table:
    """A row per decoy; numbers of formulas are shown with four digits."""
    return Table("Laws and networks that must not be taken for the scheme", COLUMNS, tuple(map(_row, result["rows"])))


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    explained = "—" if row["explained"] is None else f"{row['explained']:.2%}"
    told = "; ".join(f"{name} = {text}" for name, text in {**row["messages"], **row["outputs"]}.items())
    allowed = " or ".join(row["allowed"])
    formula = rounded(told, 4) if told else "—"
    return (
        row["name"],
        row["what"],
        row["verdict"],
        explained,
        formula,
        allowed,
        row["outcome"],
        f"{row['seconds']:.0f}",
    )
