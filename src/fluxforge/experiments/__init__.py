"""One file per figure or table of the paper: a Config, run(config), check(result)."""

from fluxforge.experiments._claim import Claim, Verdict
from fluxforge.experiments._registry import EXPERIMENTS, Experiment, reproduce

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Verdict", "reproduce"]
