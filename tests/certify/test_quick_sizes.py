"""Quick certificates measure random families at the full sizes where a claimed order does not settle at small ones."""

import pytest

from fluxforge.certify import Rates, _refinement
from fluxforge.certify._certificate import Request
from fluxforge.certify._evidence import Recorder
from fluxforge.certify._families import FULL_SIZES, QUICK_SIZES, Levels, enlarge_levels
from fluxforge.certify._studies import SpaceStudy
from fluxforge.scheme import find

SETTLED = (1.0, 0.25, 0.0625, 0.015625)
WANDERING = (1.0, 0.2, 0.12, 0.01)
STALLED = (1.0, 0.5, 0.45, 0.44)


def sizes_asked(monkeypatch, name, family, errors, *, quick=True, sizes=None):
    """The sizes that are measured if the first ones have these errors and later ones settle; and the last order."""
    asked = []

    def studies(scheme, levels, progress):
        rates = Rates((0.8, 0.4, 0.2, 0.1), SETTLED if asked else errors)
        asked.append(levels.sizes)
        return (SpaceStudy(levels.family, (1, 4, 16, 64), rates, rates, "held walls"),)

    monkeypatch.setattr(_refinement, "study_family", studies)
    levels = Levels(family, sizes or QUICK_SIZES[family])
    request = Request(find(name), None, (levels,), (), None, quick)
    recorder = Recorder(linear=True, questions=1, progress=None)
    measured = _refinement.study_space(request, recorder, levels)
    return asked, measured[0].l2.order


def test_rates_that_do_not_settle_are_measured_at_the_full_sizes(monkeypatch):
    asked, order = sizes_asked(monkeypatch, "corrected", "irregular", WANDERING)
    assert asked == [QUICK_SIZES["irregular"], FULL_SIZES["irregular"]]
    assert order == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("name", "family", "errors", "options"),
    [
        ("corrected", "irregular", SETTLED, {}),
        # Errors that have stopped falling refute the claim.
        ("corrected", "irregular", STALLED, {}),
        # A lattice does not scatter.
        ("corrected", "right", WANDERING, {}),
        # Nothing is claimed there.
        ("euler", "irregular", WANDERING, {}),
        ("corrected", "irregular", WANDERING, {"quick": False}),
        ("corrected", "irregular", WANDERING, {"sizes": (6, 12, 24)}),
    ],
)
def test_nothing_is_measured_twice_otherwise(monkeypatch, name, family, errors, options):
    asked, _ = sizes_asked(monkeypatch, name, family, errors, **options)
    assert len(asked) == 1


def test_only_random_families_have_larger_sizes():
    assert enlarge_levels(Levels("jittered", QUICK_SIZES["jittered"])) == Levels("jittered", FULL_SIZES["jittered"])
    assert enlarge_levels(Levels("squares", QUICK_SIZES["squares"])) is None
