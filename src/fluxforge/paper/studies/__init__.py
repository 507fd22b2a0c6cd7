"""One file per figure or table of the paper: a Config, run(config, …) → Result, judge(Result) → claims."""

from fluxforge.paper.studies._records import Claim, Verdict, read_result, to_document

__all__ = ["Claim", "Verdict", "read_result", "to_document"]
