"""`fluxforge rerun`: a run again, from what its folder holds; and runs that go on where another ended."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluxforge.cli._arguments import Gif, Json, Output, OutputFolder, Overwrite, Times

if TYPE_CHECKING:
    from fluxforge.stepping._problem import Problem


def rerun(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of a run of `fluxforge simulate -o`.")],
    output: OutputFolder = None,
    overwrite: Overwrite = False,
    gif: Gif = False,
    as_json: Json = False,
) -> None:
    """Run again what a folder holds: the same scheme, mesh, equation, walls and steps.

    On the same machine, with the same versions, the fields are equal bit for bit. Without -o it is said whether they
    are, and nothing is written.
    """
    from fluxforge.stepping._problem import read_problem

    _run(read_problem(folder), Output(output, overwrite, gif, as_json), before=folder)


def continue_run(folder: Path, output: Output, times: Times) -> None:
    """Go on from the last field of a folder."""
    from fluxforge.stepping._run import continue_problem

    _run(continue_problem(folder, **vars(times)), output, before=None)


def _run(problem: "Problem", output: Output, *, before: Path | None) -> None:
    from fluxforge.cli._output import show, show_json, show_pairs
    from fluxforge.cli._progress import progress_bar, use_64_bits
    from fluxforge.cli._simulation import describe, list_files
    from fluxforge.errors import InstabilityError
    from fluxforge.stepping._folder import prepare_folder
    from fluxforge.stepping._run import run_problem
    from fluxforge.stepping._simulation import write_run

    name = problem.scheme.name
    if output.folder is not None:
        prepare_folder(output.folder, [name], overwrite=output.overwrite)
    use_64_bits()
    with progress_bar(name, problem.steps, quiet=output.as_json) as tell:
        done = run_problem(problem, throw=False, progress=tell)
    equal = None if before is None else _same_field(before, done.final)
    files = [] if output.folder is None else write_run(done, output.folder, gif=output.gif, overwrite=output.overwrite)
    if output.as_json:
        more = {} if equal is None else {"equal": equal}
        show_json({**asdict(done.summary()), "files": files, **more})
    else:
        show_pairs(describe(done))
        if equal is not None:
            show(f"the last field is {'equal to' if equal else 'not equal to'} that of {before}")
        if output.folder is not None:
            show(f"wrote {output.folder}/: {list_files(files)}")
    if done.blew_up_at is not None:
        raise InstabilityError(f"scheme {done.scheme!r} blew up at step {done.blew_up_at}")


def _same_field(folder: Path, field: Any) -> bool:
    import numpy as np

    from fluxforge.stepping._problem import read_final

    return bool(np.array_equal(read_final(folder), field))
