"""Wrong types are refused in every kind of function of the package, whichever checker looks at it."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from beartype import beartype
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Array, Float, PRNGKeyArray
from jaxtyping._storage import get_shape_memo

import axis_checks
from fluxforge.graph import view
from fluxforge.mesh import dual, fourier_step, squares
from type_checks import _by_jaxtyping, jaxtyped, names_axes


def field(T: Float[Array, " cells"], S: Float[Array, " cells"]) -> Float[Array, " cells"]:
    return T + S


def shorten(T: Float[Array, " cells"]) -> Float[Array, " cells"]:
    return T[1:]


@dataclass(frozen=True)
class Pair:
    T: Float[Array, " cells"]
    S: Float[Array, " cells"]


def count(word: str, how: Literal["once", "twice"] = "once") -> int:
    return len(word) if how == "once" else 0.5  # type: ignore[return-value]


def apply(step: Callable[[Float[Array, " cells"]], int], n: int) -> int:
    return n


def draw(key: PRNGKeyArray | None, n: "int") -> dict[str, tuple[int, ...]]:
    return {"n": (n,)}


@pytest.mark.parametrize(("function", "wanted"), [(field, True), (count, False), (apply, True), (draw, True)])
def test_functions_with_named_axes_are_told_from_others(function: Any, wanted: bool) -> None:
    assert names_axes(function) is wanted


def test_axes_of_one_name_have_one_length() -> None:
    checked = jaxtyped(typechecker=beartype)(field)
    assert checked(jnp.zeros(3), jnp.ones(3)).sum() == 3.0
    assert checked(jnp.zeros(4), jnp.ones(4)).sum() == 4.0  # another call has axes of its own
    with pytest.raises(BeartypeCallHintViolation):
        checked(jnp.zeros(3), jnp.ones(4))
    with pytest.raises(BeartypeCallHintViolation):
        checked(jnp.zeros(3), np.ones(3))


def test_a_result_is_checked_against_the_axes_of_the_arguments() -> None:
    checked = jaxtyped(typechecker=beartype)(shorten)
    with pytest.raises(BeartypeCallHintViolation):
        checked(jnp.zeros(3))


def test_an_inner_call_has_axes_of_its_own() -> None:
    decorate = jaxtyped(typechecker=beartype)
    inner = decorate(field)

    @decorate
    def outer(T: Float[Array, " cells"], S: Float[Array, " slots"]) -> Float[Array, " cells"]:
        assert inner(S, S).shape == S.shape
        return T

    assert outer(jnp.zeros(3), jnp.zeros(4)).shape == (3,)


def test_a_generator_has_axes_of_its_own() -> None:
    decorate = jaxtyped(typechecker=beartype)

    @decorate
    def each(S: Float[Array, " cells"]) -> Iterator[int]:
        yield from range(len(S))

    @decorate
    def outer(T: Float[Array, " cells"], S: Float[Array, " slots"]) -> int:
        return len(T) + sum(each(S))

    assert outer(jnp.zeros(2), jnp.zeros(4)) == 2 + 6


def test_fields_of_a_record_have_one_length_and_checks_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = jaxtyped(typechecker=beartype)(Pair)
    assert checked(jnp.zeros(3), jnp.zeros(3)).T.shape == (3,)
    with pytest.raises(BeartypeCallHintViolation):
        checked(jnp.zeros(3), jnp.zeros(4))
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    assert checked(jnp.zeros(3), jnp.zeros(4)).S.shape == (4,)


def test_arguments_and_answers_are_checked_without_axes() -> None:
    checked = jaxtyped(typechecker=beartype)(count)
    assert checked("abc") == 3
    for wrong in (lambda: checked(3), lambda: checked("abc", "thrice"), lambda: checked("abc", "twice")):
        with pytest.raises(BeartypeCallHintViolation):
            wrong()


def test_the_package_s_functions_are_checked() -> None:
    graph = dual(squares(2))
    assert fourier_step(graph) > 0.0
    with pytest.raises(BeartypeCallHintViolation):
        view(graph, "dirichlet")
    with pytest.raises(BeartypeCallHintViolation):
        fourier_step("a graph")
    with pytest.raises(BeartypeCallHintViolation):
        type(graph)(**{**vars(graph), "V": graph.V[:, None]})


def test_annotations_accept_what_jaxtyping_accepts_however_often_they_are_asked() -> None:
    """The second answer is that of the quick check, where there is one."""
    values: list[Any] = [np.zeros(shape) for shape in ((), (2,), (3,), (2, 2), (2, 3), (3, 3), (2, 2, 2))]
    values += [jnp.zeros(2), jnp.zeros((3, 3)), np.zeros(2, np.float32), np.zeros(2, int), [0.0, 0.0], None]
    texts = ("", "n", "2", "n n", "n m", "n 3", "n n m", "#n n", "n ...", "*n", "n n+1", "_ n")
    for annotation in (Float[kind, text] for kind in (np.ndarray, Array) for text in texts):
        for value in values:
            wanted = axis_checks._by_jaxtyping(annotation, value)
            assert [isinstance(value, annotation) for _ in range(3)] == [wanted] * 3, (annotation, value)


def test_the_table_of_axes_is_jaxtyping_s() -> None:
    """The second array of a call has names that are known, new ones, or does not fit and adds nothing."""
    for first, second in itertools.product([(2,), (3,), (2, 2), (2, 3), (3, 3)], repeat=2):
        for one, other in itertools.product(["n", "m", "n m", "m n", "n n", "n 2"], repeat=2):
            pairs = [(Float[np.ndarray, one], np.zeros(first)), (Float[np.ndarray, other], np.zeros(second))]
            assert answers(isinstance, pairs) == answers(axis_checks._by_jaxtyping, [p[::-1] for p in pairs])


def answers(check: Any, pairs: list[tuple[Any, Any]]) -> Any:
    """Whether each value is what its annotation says, within one call, and the lengths of the axes afterwards."""
    with _by_jaxtyping("context"):
        checked = [check(value, annotation) for annotation, value in pairs]
        return checked, dict(get_shape_memo()[0])
