"""The run of a flux for skewed meshes: its stages, files and report in a folder."""

from fluxforge import recipe
from fluxforge.pipeline._certification import name_outputs
from fluxforge.pipeline._folder import Progress, check_outputs, finite, record_outputs
from fluxforge.pipeline._report import rewrite_skew
from fluxforge.pipeline._run import SKEW, Run
from fluxforge.pipeline._skew import NETWORK, discover_skew
from fluxforge.report import write_skew
from fluxforge.run import RunFolder
from fluxforge.run.result import Document, from_document, to_document
from fluxforge.run.skew import SkewResult


def finish_skew_run(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Run:
    """Run what is not finished in the folder of a flux for skewed meshes, and check the files of what is."""
    document: Document | None = folder.read_stage(SKEW)
    command = str(folder.description.get("command", ""))
    if document is None:
        found, scheme, certificate = discover_skew(spec, folder, tell)
        document = finite(to_document(found))
        result = from_document(document, SkewResult, folder.path)
        paths = write_skew(result, scheme, folder.path, command=command)
        names = () if certificate is None else name_outputs(result.verdict == "recovered")
        laws = () if certificate is None else tuple(f"scheme-{law.name}.json" for law in result.laws[1:])
        texts = tuple(folder.path / name for name in (*names, *laws))
        record_outputs(folder, spec, (*paths, folder.path / NETWORK), texts=texts)
        folder.finish(SKEW, document)
    else:
        result = from_document(document, SkewResult, folder.path)
        check_outputs(folder, spec, lambda into: rewrite_skew(result, into, command))
    return Run(folder.path, spec, document)
