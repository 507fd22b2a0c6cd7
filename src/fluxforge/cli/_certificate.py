"""Run `fluxforge verify` and print the certificate."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.text import Text

from fluxforge.certify._certificate import Certificate
from fluxforge.certify._evidence import Line, Verdict
from fluxforge.certify._verify import verify
from fluxforge.cli._output import (
    command_line,
    question_bar,
    replace_unprintable,
    show,
    show_json,
    show_pairs,
    show_sentence,
)
from fluxforge.errors import FluxforgeError
from fluxforge.mesh._read import read
from fluxforge.report._certificate_page import write_certificate
from fluxforge.scheme._document import find

STYLES = {
    Verdict.HOLDS: "green",
    Verdict.FAILS: "red",
    Verdict.MEASURED: "cyan",
    Verdict.UNKNOWN: "yellow",
    Verdict.LEFT_OUT: "dim",
}


def certify(
    name: str, equation: str | None, mesh: Path | None, *, folder: Path | None, as_json: bool, **options: Any
) -> None:
    """Certify a scheme, write and print the certificate; `options` are further arguments of `fluxforge.verify`.

    Raises FluxforgeError at the end if a claim is contradicted or not established.
    """
    scheme = find(name, equation)
    one = None if mesh is None else read(mesh)
    with question_bar(f"certifying {scheme.name}", quiet=as_json) as tell:
        certificate = verify(scheme, mesh=one, progress=tell, **options)
    written = []
    if folder is not None:
        written = write_certificate(certificate, scheme, folder, command=command_line())
    if as_json:
        show_json({"format_version": 1, **certificate.to_document()})
    else:
        _show_certificate(certificate, written)
    if certificate.contradicted:
        first = certificate.contradicted[0]
        raise FluxforgeError(f"the claim {first.property!r} of scheme {scheme.name!r} is contradicted: {first.words()}")
    if certificate.not_established:
        first = certificate.not_established[0]
        raise FluxforgeError(f"the claim {first.property!r} of scheme {scheme.name!r}: {first.words()}")


def _merge_unknown(lines: Sequence[Line]) -> list[Line]:
    """The lines, those of properties that are not established for the same reason merged into the first of them."""
    merged: list[Line] = []
    at: dict[str, int] = {}
    for line in lines:
        if line.verdict is not Verdict.UNKNOWN or (k := at.setdefault(line.evidence, len(merged))) == len(merged):
            merged.append(line)
        else:
            merged[k] = replace(merged[k], property=f"{merged[k].property}, {line.property}")
    return merged


def _show_certificate(certificate: Certificate, written: list[Path]) -> None:
    show_sentence(f"{certificate.scheme}: {certificate.summary}")
    show()
    for line in _merge_unknown(certificate.lines):
        show(Text.assemble((f"{line.verdict:<16}", STYLES[line.verdict]), (replace_unprintable(line.property), "bold")))
        show_pairs([(" " * 15, replace_unprintable(line.evidence))])
    show()
    quick = " (from a quick run)" if certificate.quick else ""
    style = "bold red" if certificate.contradicted else "bold yellow" if certificate.not_established else "bold"
    show(Text.assemble("verdict: ", (certificate.verdict, style), quick))
    if written:
        names = ", ".join(path.name for path in written)
        show(f"wrote {written[0].parent}/: {names}")
