"""What the README shows is run."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_python_of_the_readme_runs(capsys) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, str(README), "exec"), names)
    first, second = capsys.readouterr().out.splitlines()
    assert 0 < float(first) < 1
    assert second.startswith("as claimed 1.9")


def test_every_command_the_readme_names_exists() -> None:
    import typer

    from fluxforge.cli._app import app

    known = set(typer.main.get_command(app).commands)
    named = set(re.findall(r"fluxforge ([a-z]+)", README.read_text(encoding="utf-8")))
    assert named - {"treats", "as"} <= known
    assert len(named) > 6
