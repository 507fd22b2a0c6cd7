"""Vertices of a polygon as text."""

from fluxforge.errors import InputError


def vertices_of(text: str) -> list[tuple[float, float]]:
    """`"0,0 1,0 1,1"` → pairs of numbers."""
    return [_vertex(word, number) for number, word in enumerate(text.replace(";", " ").split())]


def _vertex(word: str, number: int) -> tuple[float, float]:
    try:
        x, y = (float(part) for part in word.split(","))
    except ValueError as error:
        raise InputError(
            f"vertex {number} is {word!r:.60}; write each as x,y and put spaces between: 0,0 1,0 1,1"
        ) from error
    return x, y
