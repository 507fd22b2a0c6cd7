"""A part is run once for its inputs, and again only when they have changed."""

import json

import pytest

from fluxforge import recipe
from fluxforge.errors import DocumentError, InputError
from fluxforge.paper import _part, read_documents, reproduce


def test_a_finished_part_is_not_repeated(toys, tmp_path):
    first, _ = toys
    made = reproduce("first", folder=tmp_path)
    read = reproduce("first", folder=tmp_path)
    assert first.runs == 1
    assert json.dumps(read) == json.dumps(made)
    assert (made["format"], made["format_version"]) == ("fluxforge-first", 1)


@pytest.mark.parametrize("change", [{"preset": "paper"}, {"changes": {"seeds": 2}}, {"again": True}])
def test_it_is_repeated_when_asked_for_otherwise(toys, tmp_path, change):
    first, _ = toys
    reproduce("first", folder=tmp_path)
    reproduce("first", folder=tmp_path, **change)
    assert first.runs == 2


def test_it_is_repeated_when_its_recipe_has_changed(toys, tmp_path, monkeypatch):
    first, _ = toys
    reproduce("first", folder=tmp_path)
    load = recipe.load
    monkeypatch.setattr(
        recipe, "load", lambda name, **how: recipe.override(load(name, **how), {"training.learning_rate": 0.5})
    )
    reproduce("first", folder=tmp_path)
    assert first.runs == 2


def test_it_is_repeated_with_another_version_of_a_library(toys, tmp_path, monkeypatch):
    first, _ = toys
    reproduce("first", folder=tmp_path)
    versions = _part.environment()
    monkeypatch.setattr(_part, "environment", lambda: versions | {"system": "elsewhere"})
    reproduce("first", folder=tmp_path)
    assert first.runs == 1
    monkeypatch.setattr(_part, "environment", lambda: versions | {"jax": "0.0.1"})
    reproduce("first", folder=tmp_path)
    assert first.runs == 2


def test_what_a_part_builds_on_is_one_of_its_inputs(toys, tmp_path):
    first, second = toys
    reproduce("second", folder=tmp_path)
    reproduce("first", folder=tmp_path)
    reproduce("second", folder=tmp_path)
    reproduce("second", folder=tmp_path)
    assert second.runs == 2
    reproduce("first", folder=tmp_path, changes={"seeds": 3})
    reproduce("second", folder=tmp_path)
    assert (first.runs, second.runs) == (2, 3)


def test_a_damaged_document_is_made_again(toys, tmp_path):
    first, _ = toys
    reproduce("first", folder=tmp_path)
    path = tmp_path / "first" / "first.json"
    path.write_text(path.read_text(encoding="utf-8")[:-40], encoding="utf-8")
    reproduce("first", folder=tmp_path)
    assert first.runs == 2
    json.loads(path.read_text(encoding="utf-8"))


def test_a_figure_that_is_missing_is_drawn_without_running_anything(toys, tmp_path):
    first, _ = toys
    reproduce("first", folder=tmp_path)
    figure = tmp_path / "first" / "first-figure.png"
    figure.unlink()
    reproduce("first", folder=tmp_path)
    assert first.runs == 1
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_without_a_folder_nothing_is_kept(toys):
    first, _ = toys
    reproduce("first")
    reproduce("first")
    assert first.runs == 2


def test_documents_are_found_in_folders_of_runs_and_in_folders_of_results(toys, tmp_path):
    reproduce("first", folder=tmp_path / "run")
    (tmp_path / "kept").mkdir()
    (tmp_path / "run" / "first" / "first.json").rename(tmp_path / "kept" / "first.json")
    assert list(read_documents(tmp_path / "kept")) == ["first"]
    assert read_documents(tmp_path / "run") == {}
    (tmp_path / "kept" / "second.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DocumentError, match=r"second\.json"):
        read_documents(tmp_path / "kept")


def test_a_part_that_is_not_there_is_refused():
    with pytest.raises(InputError, match=r"'figure-9'.*generalisation"):
        reproduce("figure-9")
