"""The run of a flux for skewed meshes: its files and report in a folder."""

from fluxforge import recipe
from fluxforge.pipeline._certification import name_outputs
from fluxforge.pipeline._folder import Progress, finite, record_outputs
from fluxforge.pipeline._skew import NETWORK, discover_skew
from fluxforge.report import write_skew
from fluxforge.run import RunFolder
from fluxforge.run.result import Document, from_document, to_document
from fluxforge.run.skew import SkewResult
from fluxforge.skew import OBJECTIVES


def run_skew(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Document:
    """From a recipe to the schemes, certificate and report in the folder; returns the document."""
    found, scheme, certificate = discover_skew(spec, folder, tell)
    document: Document = finite(to_document(found))
    result = from_document(document, SkewResult, folder.path)
    paths = write_skew(result, scheme, folder.path, command=str(folder.description.get("command", "")))
    names = () if certificate is None else name_outputs(result.verdict == "recovered")
    laws = () if certificate is None else tuple(f"scheme-{name}.json" for name in OBJECTIVES)
    texts = tuple(folder.path / name for name in (*names, *laws))
    record_outputs(folder, spec, (*paths, folder.path / NETWORK), texts=texts)
    return document
