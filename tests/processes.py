"""Talking to processes that are going to be killed."""

import subprocess


def line(process: subprocess.Popen[str]) -> str:
    """The next line a process writes; it has to be alive."""
    assert process.stdout is not None
    text = process.stdout.readline()
    assert text, "the process has ended"
    return text.strip()
