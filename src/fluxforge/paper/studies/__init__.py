"""The studies of the paper: modules with a Config, run(config, folder, tell, warn) → Result, judge(Result) → claims."""

from fluxforge.paper.studies._records import Claim, StudyConfig, Verdict, read_result, to_document

__all__ = ["Claim", "StudyConfig", "Verdict", "read_result", "to_document"]
