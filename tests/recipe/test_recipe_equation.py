"""Recipes with equations of their own: read into the recipe and checked; those for heat keep their fingerprints."""

from pathlib import Path
from typing import Any

import pytest
from recipe_files import BASE, PLAIN, refused, with_fields

from fluxforge import pde
from fluxforge.errors import RecipeError
from fluxforge.recipe import (
    Recipe,
    diffusivity_of,
    equation_of,
    fingerprint,
    from_dict,
    load,
    override,
    self_contained,
    settings,
    text,
    to_dict,
)
from own_equations import ADVECTION, FISHER, written

# As they were before recipes had an equation: run folders can be resumed only if they stay the same.
FINGERPRINTS = {
    ("first-order", "quick"): "e75bb5d4f73853f2",
    ("first-order", "paper"): "239a820e728ca930",
    ("first-order-direct", "quick"): "f221e6a852c8c113",
    ("first-order-pinn", "quick"): "7b7d488a69e2e1eb",
    ("generalisation", "quick"): "9681a5a5b89d81a7",
    ("midpoint", "quick"): "27d7d52973c0ba38",
    ("two-hop", "paper"): "e1bcd9ff4181119b",
}
OWN = 'equation = "own.toml"\n' + BASE + "[parameters]\nD = 2\n"


def recipe_file(folder: Path, content: str = OWN, equation: str = FISHER) -> Path:
    written(equation, folder)
    return written(content, folder, "recipe.toml")


def test_an_equation_is_found_beside_the_recipe_and_kept_inside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = recipe_file(tmp_path)
    expected = pde.find(tmp_path / "own.toml")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    spec = load(path)
    (tmp_path / "own.toml").unlink()
    again = from_dict(to_dict(spec), "run.json")
    assert again == spec
    assert equation_of(again) == expected
    assert settings(again) == {"D": 2.0, "r": 1.0}
    assert fingerprint(again) == fingerprint(spec)


@pytest.mark.parametrize(("name", "preset"), FINGERPRINTS)
def test_recipes_about_heat_keep_their_names(name: str, preset: str) -> None:
    assert fingerprint(load(name, preset=preset)) == FINGERPRINTS[name, preset]


def test_a_document_from_before_there_were_equations_is_about_heat() -> None:
    document = to_dict(PLAIN)
    del document["equation"], document["parameters"]
    old = from_dict(document | {"diffusivity": 2.5}, "run.json")
    assert equation_of(old) == pde.HEAT
    assert settings(old) == {"alpha": 2.5}
    assert diffusivity_of(old) == 2.5
    named = override(PLAIN, {"parameters.alpha": 2.5})
    assert settings(named) == settings(old)
    assert fingerprint(named) == fingerprint(old) != fingerprint(PLAIN)
    assert diffusivity_of(PLAIN) == 1.0


def test_the_equation_and_its_parameters_decide(tmp_path: Path) -> None:
    spec = load(recipe_file(tmp_path))
    other = override(spec, {"parameters.r": 1.5})
    assert settings(other) == {"D": 2.0, "r": 1.5}
    assert len({fingerprint(spec), fingerprint(other), fingerprint(PLAIN)}) == 3
    # A default that is written down is the same number.
    assert settings(override(spec, {"parameters.r": 1.0})) == settings(spec)


def test_files_given_on_the_command_line_and_in_python_are_relative_to_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(FISHER, tmp_path)
    monkeypatch.chdir(tmp_path)
    changed = override(PLAIN, {"equation": "own.toml"})
    built = self_contained(Recipe(name="mine", loss=PLAIN.loss, equation="own.toml"))
    assert changed == built
    assert equation_of(built).name == "fisher"


def test_a_recipe_with_an_equation_is_written_as_text_that_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = recipe_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    shown = text(path, changes={"parameters.r": 3.0, "seed": 4})
    assert settings(load(written(shown, tmp_path, "shown.toml"))) == {"D": 2.0, "r": 3.0}
    in_full = text("first-order", changes={"equation": "own.toml", "diffusivity": 1.0})
    spec = load(written(in_full, tmp_path, "full.toml"))
    assert equation_of(spec).name == "fisher"


@pytest.mark.parametrize(
    ("content", "equation", "message"),
    [
        (OWN.replace("own.toml", "other.toml"), FISHER, "field 'equation': .*other.toml: cannot be read"),
        (OWN, "name = 3", "field 'equation': .*own.toml: field 'name' should be text"),
        (OWN.replace("own.toml", "heta"), FISHER, "field 'equation': no equation 'heta'.* Did you mean 'heat'"),
        (OWN.replace("D =", "q ="), FISHER, "field 'parameters': equation 'fisher' has no parameter 'q'; it has: D, r"),
        (OWN.replace("D = 2", "D = -2"), FISHER, "field 'parameters': the diffusion of .* should be positive, got -2"),
        (OWN.replace("D = 2", "D = [1, 2]"), FISHER, "parameter 'D', a scalar, should be a number"),
        (OWN.replace("D = 2", "D = 1e9"), FISHER, "field 'parameters.D': expected a number from -1000000.0 to"),
        (OWN.replace("D =", "r = nan\nD ="), FISHER, "field 'parameters.r': expected a finite number"),
        ("diffusivity = 2\n" + OWN, FISHER, "diffusivity and D are the same parameter: give one"),
        (OWN.replace("D = 2", ""), ADVECTION, "parameter 'a' has no value: give one in \\[parameters\\]"),
        (OWN.replace("D =", "a ="), ADVECTION, "parameter 'a', a vector, should be 2 numbers"),
        (OWN, FISHER.replace("r*u*(1 - u)", "r*sqrt(u)"), "the reaction of 'fisher' is not finite for every u"),
        (OWN + '[network]\nfeatures = "simplified"', FISHER, "'equation' and 'network.features': .* the flux of heat"),
    ],
)
def test_what_cannot_be_trained_on_is_refused_in_one_line(
    tmp_path: Path, content: str, equation: str, message: str
) -> None:
    with pytest.raises(RecipeError, match=message) as caught:
        load(recipe_file(tmp_path, content, equation))
    assert "\n" not in str(caught.value)


def test_a_stencil_is_read_of_equations_that_only_diffuse(tmp_path: Path) -> None:
    plain = FISHER.replace("r*u*(1 - u)", "0")
    stencil: dict[str, Any] = to_dict(load("midpoint")) | {"diffusivity": None}
    for text_, refusal in ((FISHER, "fields 'equation' and 'search.route'"), (plain, None)):
        own = stencil | {"equation": pde.to_document(pde.find(written(text_, tmp_path)))}
        if refusal is None:
            assert equation_of(from_dict(own, "x")).name == "fisher"
        else:
            with pytest.raises(RecipeError, match=refusal):
                from_dict(own, "x")


def test_a_table_that_is_no_equation_is_refused() -> None:
    assert "field 'name' is missing" in refused(with_fields(PLAIN, equation={"diffusion": "D"}))
    assert "equation" in refused(with_fields(PLAIN, equation=3))
