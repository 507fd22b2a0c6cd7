"""The opening question of reports, and commands and links at their end."""

import shlex

import pytest
from _discovery_result import EARLY, read

from fluxforge.report._discovery_words import describe_question
from fluxforge.report._next import describe_scheme, format_setting, list_files, scheme_commands
from fluxforge.run._outputs import ACCEPTED, CANDIDATE
from fluxforge.scheme import find


@pytest.mark.parametrize(
    ("scheme", "equation", "setting"),
    [
        ("upwind", "advection", "velocity=(1, 0.5)"),
        ("corrected", "anisotropic", "K=((2, 0), (0, 1))"),
        ("midpoint", "heat", None),
    ],
)
def test_commands_set_the_parameters_that_have_no_default(scheme, equation, setting):
    run = dict(scheme_commands(find(scheme, equation), "scheme.json"))["Simulate with this scheme"]
    words = shlex.split(run)
    assert words[:3] == ["fluxforge", "simulate", "scheme.json"]
    assert [words[k + 1] for k, word in enumerate(words) if word == "--set"] == ([setting] if setting else [])


@pytest.mark.parametrize("scheme", [None, find("upwind", "advection")])
def test_pages_of_every_kind_say_how_to_resume_and_to_repeat_the_run(scheme):
    page = describe_scheme(read(EARLY), scheme, None, command="fluxforge discover upwind -o up")
    commands = [command for _, command in page["next"]]
    assert commands[-2:] == [
        "fluxforge discover --resume .",
        "fluxforge discover upwind --seed 18 -o first-order-seed-18",
    ]
    assert ("fluxforge verify" in " ".join(commands)) == (scheme is not None)


def test_commands_set_the_parameters_of_a_run_in_all_digits():
    given = {"velocity": [1 / 3, 0.5]}
    run = dict(scheme_commands(find("upwind", "advection"), "scheme.json", parameters=given))
    assert "--set 'velocity=(0.33333333333333331, 0.5)'" in run["Simulate with this scheme"]
    assert format_setting([[2, 0.0], [0, 1.5]]) == "((2, 0), (0, 1.5))"


def test_commands_begin_with_the_mesh_that_they_use():
    first, second = (command for _, command in scheme_commands(find("midpoint"), CANDIDATE.scheme)[:2])
    assert first.endswith("-o mesh.msh")
    assert "candidate.json --mesh mesh.msh" in second


def test_files_are_named_by_the_verdict_and_left_out_without_a_scheme():
    names = [name for name, _ in list_files(find("midpoint"), CANDIDATE, [("waves", "errors")], metrics=True)]
    assert names == ["candidate.json", "candidate-certificate.json", "metrics.jsonl", "run.json", "waves.svg"]
    assert [name for name, _ in list_files(None, ACCEPTED)] == ["run.json"]


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ([{"supervised": 1.0}], "their neighbours and was trained on examples of single steps, advance the"),
        ([], "which sees only cells and their neighbours, advance the temperatures of a mesh"),
    ],
)
def test_the_question_says_how_the_network_was_trained_if_that_is_known(metrics, words):
    assert words in describe_question(metrics, "heat")
