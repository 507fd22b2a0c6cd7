"""One file per figure or table of the paper: a Config, run(config), check(result)."""

from fluxforge.paper.studies._records import Claim, Verdict

__all__ = ["Claim", "Verdict"]
