"""The folder of a run: description, progress and seconds, and the digests of the files that a finished run leaves."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from fluxforge import recipe
from fluxforge._machine import environment
from fluxforge.errors import InputError
from fluxforge.run._durable import digest_files, find_altered, read_digests, write_durably
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, Warn
from fluxforge.run._record import Document, Record
from fluxforge.run.result import from_document, to_document
from fluxforge.train._train import Tell


@contextmanager
def run_folder(path: Path, spec: recipe.Recipe, *, warn: Warn) -> Iterator[RunFolder]:
    """Open the run folder of a recipe: it is created if it has no run, and continued if its run is of the same recipe.

    Raises InputError if its run is of another recipe.
    """
    if not (path / "run.json").exists():
        with RunFolder.create(path, description=describe_run(spec), warn=warn) as folder:
            yield folder
        return
    with RunFolder.open(path, warn=warn) as folder:
        if recipe.fingerprint(recipe_of(folder)) != recipe.fingerprint(spec):
            raise InputError(f"{path}: contains a run of another recipe: choose another -o")
        yield folder


def recipe_of(folder: RunFolder) -> recipe.Recipe:
    """The recipe that a run was started with, from the description in its folder."""
    return recipe.from_dict(folder.description.get("recipe"), f"{folder.path / 'run.json'}")


def describe_run(spec: recipe.Recipe, command: str | None = None) -> Document:
    """The description of a run for its folder: recipe, environment and, if given, the command."""
    described = {"recipe": recipe.to_dict(spec), "environment": environment()}
    return described if command is None else {**described, "command": command}


def command_of(folder: RunFolder) -> str:
    """The command that started a run; empty if it was started from Python."""
    return str(folder.description.get("command", ""))


def training_progress(tell: Progress) -> Tell:
    """A callback of training that reports its steps and loss terms as one line."""

    def report(step: int, steps: int, terms: Mapping[str, float]) -> None:
        shown = ", ".join(f"{name} {value:.2e}" for name, value in terms.items())
        tell(f"training ({shown})", step, steps)

    return report


_OUTPUTS = "outputs"
# Writes the outputs of a finished run into another folder, which already has the text files; the result is not used.
Remake = Callable[[Path], object]


class _Outputs(Record, frozen=True, kw_only=True):
    """The fingerprint of the recipe, SHA-256 digests of files by name, and the content of small text files by name."""

    fingerprint: str
    files: dict[str, str]
    texts: dict[str, str]


def _read_record(folder: RunFolder) -> _Outputs | None:
    """The record of a run's outputs, None if there is none; raises DocumentError if a name leads out of the folder."""
    document = folder.read_stage(_OUTPUTS)
    if document is None:
        return None
    where = folder.stage_path(_OUTPUTS)
    record = from_document(document, _Outputs, where)
    for names in (record.files, record.texts):
        read_digests(names, where)
    return record


def record_outputs(
    folder: RunFolder, spec: recipe.Recipe, paths: Iterable[Path], *, texts: Iterable[Path] = ()
) -> None:
    """Record the digests of a run's outputs, metrics and checkpoints; of `texts`, small files, also the content."""
    texts = tuple(texts)
    kept = (folder.metrics.path, *sorted(folder.checkpoints.folder.glob("*.safetensors")))
    files = digest_files(folder.path, (*texts, *paths, *(path for path in kept if path.exists())))
    content = {path.relative_to(folder.path).as_posix(): path.read_text(encoding="utf-8") for path in texts}
    record = _Outputs(fingerprint=recipe.fingerprint(spec), files=files, texts=content)
    folder.finish(_OUTPUTS, to_document(record))


def check_outputs(folder: RunFolder, spec: recipe.Recipe, remake: Remake) -> None:
    """Compare a finished run's outputs with what was recorded: restore those missing, warn of those changed.

    A changed file is left as it is, since it may have been changed on purpose. `remake` writes the outputs again.
    Raises InputError if the recipe is not that of the run.
    """
    record = _read_record(folder)
    if record is None:  # finished by an older version, which recorded no outputs
        return
    if record.fingerprint != recipe.fingerprint(spec):
        raise InputError(
            f"{folder.path / 'run.json'}: its recipe is not the one that the run was made with: restore the "
            "recipe, or start a new run"
        )
    altered = find_altered(folder.path, record.files)
    for name in altered.changed:
        folder.warn(
            f"{folder.path / name}: has changed since the run wrote it (its SHA-256 differs); remove it and resume "
            "again to restore it"
        )
    if not altered.missing:
        return
    restored = _restore(folder, record, altered.missing, remake, whole=folder.metrics.path.name not in altered.changed)
    if restored:
        folder.finish(_OUTPUTS, to_document(replace(record, files={**record.files, **restored})))
    for name in altered.missing:
        how = "was missing and has been restored" if name in restored else "is missing and cannot be restored"
        folder.warn(f"{folder.path / name}: {how}")


def _restore(
    folder: RunFolder, record: _Outputs, missing: tuple[str, ...], remake: Remake, *, whole: bool
) -> dict[str, str]:
    """Write the missing files that can be restored, and return their digests, since figures may differ in some bytes.

    Text files are restored from the record. The others show the metrics of the run: they are not made if the metrics
    are missing or, with `whole` false, were changed.
    """
    restored: dict[str, str] = {}
    for name in set(missing) & record.texts.keys():
        write_durably(folder.path / name, record.texts[name].encode())
        restored |= digest_files(folder.path, [folder.path / name])
    kept = {folder.metrics.path.name, *(name for name in missing if name.startswith(folder.checkpoints.folder.name))}
    wanted = set(missing) - restored.keys() - kept
    if not wanted or not whole or folder.metrics.path.name in missing:
        return restored
    with TemporaryDirectory() as scratch:
        for name, text in record.texts.items():
            (Path(scratch) / name).write_text(text, encoding="utf-8")
        remake(Path(scratch))
        for name in sorted(wanted):
            if (Path(scratch) / name).is_file():
                write_durably(folder.path / name, (Path(scratch) / name).read_bytes())
                restored |= digest_files(folder.path, [folder.path / name])
    return restored
