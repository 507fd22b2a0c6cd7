"""What `fluxforge verify` runs, and how it shows the certificate."""

from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from fluxforge.certify._certificate import Certificate
from fluxforge.certify._evidence import Verdict
from fluxforge.certify._verify import verify
from fluxforge.cli._output import command_line, printable, question_bar, show, show_json, show_pairs
from fluxforge.errors import FluxforgeError, InputError
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


@dataclass(frozen=True)
class Request:
    """The scheme to certify, on which meshes, how thoroughly, and where to write the certificate."""

    scheme: str
    equation: str | None
    families: tuple[str, ...] | None
    levels: int | None
    mesh: Path | None
    meshes: tuple[str, ...] | None
    exact: str | None
    quick: bool
    folder: Path | None
    as_json: bool


def run(request: Request) -> None:
    """Certify a scheme, write and print the certificate.

    Raises FluxforgeError after that if a claim is contradicted or not established.
    """
    scheme = find(request.scheme, request.equation)
    mesh = None if request.mesh is None else read(request.mesh)
    if request.meshes is not None and len(request.meshes) < 2:
        raise InputError("--meshes needs at least two files, from coarse to fine: a.msh,b.msh,c.msh")
    with question_bar(f"certifying {scheme.name}", quiet=request.as_json) as tell:
        certificate = verify(
            scheme,
            families=request.families,
            levels=request.levels,
            quick=request.quick,
            mesh=mesh,
            meshes=request.meshes or (),
            exact=request.exact,
            progress=tell,
        )
    written = []
    if request.folder is not None:
        written = write_certificate(certificate, scheme, request.folder, command=command_line())
    if request.as_json:
        show_json({"format_version": 1, **certificate.to_document()})
    else:
        _show_certificate(certificate, written)
    if certificate.contradicted:
        first = certificate.contradicted[0]
        raise FluxforgeError(f"the claim {first.property!r} of scheme {scheme.name!r} is contradicted: {first.words()}")
    if certificate.not_established:
        first = certificate.not_established[0]
        raise FluxforgeError(f"the claim {first.property!r} of scheme {scheme.name!r}: {first.words()}")


def _verdict_style(certificate: Certificate) -> str:
    if certificate.contradicted:
        return "bold red"
    return "bold yellow" if certificate.not_established else "bold"


def _show_certificate(certificate: Certificate, written: list[Path]) -> None:
    show(printable(f"{certificate.scheme}: {certificate.summary}"))
    show()
    for line in certificate.lines:
        show(Text.assemble((f"{line.verdict:<16}", STYLES[line.verdict]), (printable(line.property), "bold")))
        show_pairs([(" " * 15, printable(line.evidence))])
    show()
    quick = " (from a quick run)" if certificate.quick else ""
    show(Text.assemble("verdict: ", (certificate.verdict, _verdict_style(certificate)), quick))
    if written:
        names = ", ".join(path.name for path in written)
        show(f"wrote {written[0].parent}/: {names}")
