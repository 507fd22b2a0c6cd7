"""`fluxforge bench limiter`: what is refused before anything is measured."""

from pathlib import Path

from cli_runs import Cli, only_line


def test_a_figure_without_triangles_is_refused(cli: Cli, tmp_path: Path) -> None:
    told = cli("bench", "limiter", "--no-triangles", "--figure", tmp_path / "fields.png")
    assert told.code == 2
    assert "--figure" in only_line(told.err)
    assert not (tmp_path / "fields.png").exists()
