"""One file per figure or table of the paper: a Config, run(config, …) → Result, judge(Result) → claims."""

from fluxforge.paper.studies._records import Claim, StudyConfig, Verdict, read_result, to_document

__all__ = ["Claim", "StudyConfig", "Verdict", "read_result", "to_document"]
