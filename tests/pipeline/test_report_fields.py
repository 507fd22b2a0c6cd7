"""The fields in a report are those of the run's own network, of its formula and of the law of its data."""

import jax
import numpy as np
import pytest

from fluxforge import recipe
from fluxforge.data import source
from fluxforge.pipeline._folder import describe_run
from fluxforge.pipeline._report import draw_fields, read_member
from fluxforge.run import RunFolder
from fluxforge.scheme import find
from fluxforge.train import train

TINY = {"training.steps": 2, "training.chunk": 1, "training.batch": 4, "network.width": 4, "network.depth": 1}
TINY |= {"evaluation.meshes": 2, "evaluation.cells": 40, "evaluation.rollout": 3, "evaluation.engine": "builtin"}
SPEC = recipe.override(recipe.load("first-order"), TINY)


def panels(figures):
    assert all(figure.axes[0].get_title() == title for title, figure in figures.items())
    return {title: figure.axes[0].collections[0].get_array() for title, figure in figures.items()}


@pytest.fixture
def folder(tmp_path):
    with RunFolder.create(tmp_path / "run", description=describe_run(SPEC), warn=print) as folder:
        yield folder


def test_network_formula_and_reference_are_drawn_with_all_their_differences(folder):
    trained = train(SPEC, source(SPEC), folder=folder)
    read = read_member(SPEC, folder, 0)
    for one, other in zip(jax.tree.leaves(read), jax.tree.leaves(trained.member(0)), strict=True):
        np.testing.assert_array_equal(one, other)
    fields = panels(draw_fields(find("euler"), SPEC, folder, 0))
    pairs = ["network − formula", "network − reference", "formula − reference"]
    assert list(fields) == ["network", "formula", "reference", *pairs]
    # The formula is the law: three steps of sums of a few terms of size 1, each rounded to 1e-16.
    assert np.abs(fields["formula − reference"]).max() < 1e-13
    assert np.abs(fields["network − reference"]).max() > 1e-6


def test_without_a_checkpoint_the_formula_is_compared_with_the_reference_alone(folder):
    assert read_member(SPEC, folder, 0) is None
    fields = panels(draw_fields(find("euler"), SPEC, folder, 0))
    assert list(fields) == ["formula", "reference", "formula − reference"]


def test_a_recipe_without_evaluation_has_no_such_figure(folder):
    spec = recipe.override(SPEC, {"evaluation.meshes": 0})
    assert draw_fields(find("euler"), spec, folder, 0) == {}
