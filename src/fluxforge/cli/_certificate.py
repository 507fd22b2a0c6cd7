"""Making and showing certificates for the command line."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from fluxforge.cli._output import printable, show, show_json, show_pairs
from fluxforge.cli._progress import question_bar
from fluxforge.errors import FluxforgeError
from fluxforge.mesh import read
from fluxforge.report import write_certificate
from fluxforge.scheme import find
from fluxforge.verify import Certificate, Verdict, verify

STYLES = {Verdict.HOLDS: "green", Verdict.FAILS: "red", Verdict.MEASURED: "cyan", Verdict.UNKNOWN: "yellow"}


@dataclass(frozen=True)
class Request:
    """What to certify, how thoroughly, and where to leave it."""

    scheme: str
    families: tuple[str, ...] | None
    levels: int | None
    mesh: Path | None
    quick: bool
    folder: Path | None
    as_json: bool


def run(request: Request) -> None:
    """Certify, write, show; a contradicted claim is an error after that."""
    scheme = find(request.scheme)
    mesh = None if request.mesh is None else read(request.mesh)
    with question_bar(f"certifying {scheme.name}", quiet=request.as_json) as tell:
        certificate = verify(
            scheme,
            families=request.families,
            levels=request.levels,
            quick=request.quick,
            mesh=mesh,
            progress=tell,
        )
    written = []
    if request.folder is not None:
        command = shlex.join(["fluxforge", *sys.argv[1:]])
        written = write_certificate(certificate, scheme, request.folder, command=command)
    if request.as_json:
        show_json({"format_version": 1, **certificate.to_document()})
    else:
        _show(certificate, written)
    if certificate.contradicted:
        first = certificate.contradicted[0]
        raise FluxforgeError(f"the claim {first.property!r} of scheme {scheme.name!r} is contradicted: {first.words()}")


def _show(certificate: Certificate, written: list[Path]) -> None:
    show(Text.assemble("certificate of ", (printable(certificate.scheme), "bold")))
    show()
    for line in certificate.lines:
        show(Text.assemble((f"{line.verdict:<16}", STYLES[line.verdict]), (printable(line.property), "bold")))
        show_pairs([(" " * 15, printable(line.evidence))])
    show()
    quick = " (from a quick run)" if certificate.quick else ""
    show(Text.assemble("verdict: ", (certificate.verdict, "bold red" if certificate.contradicted else "bold"), quick))
    if written:
        names = ", ".join(path.name for path in written)
        show(f"wrote {written[0].parent}/: {names}")
