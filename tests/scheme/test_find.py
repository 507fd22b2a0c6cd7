"""A scheme by name, by file, or by the folder of the run that found it."""

import pytest

from fluxforge.errors import SchemeError
from fluxforge.scheme import find, save


def test_a_run_is_as_good_as_its_scheme(tmp_path):
    save(find("midpoint"), tmp_path / "scheme.json")
    assert find(tmp_path) == find(tmp_path / "scheme.json")
    assert find(str(tmp_path)).stages == find("midpoint").stages


def test_a_run_whose_formula_is_not_believed_has_none(tmp_path):
    save(find("midpoint"), tmp_path / "candidate.json")
    with pytest.raises(SchemeError, match=r"holds no scheme\.json.*is in candidate\.json"):
        find(tmp_path)


def test_a_built_in_name_comes_before_a_folder_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "euler").mkdir()
    save(find("midpoint"), tmp_path / "euler" / "scheme.json")
    assert find("euler").name == "euler"
    assert find("./euler").stages == find("midpoint").stages
