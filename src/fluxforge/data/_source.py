"""Where batches come from: a fixed set, or problems drawn anew."""

import abc

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

from fluxforge import recipe
from fluxforge.data._model import Model
from fluxforge.data._pairs import random_pair
from fluxforge.data._problem import Problem


class AbstractSource(eqx.Module):
    """Batches as a pure function of a key."""

    @abc.abstractmethod
    def batch(self, key: PRNGKeyArray, count: int) -> Problem:
        """`count` problems along a first axis."""


class FixedSource(AbstractSource):
    """A set of problems, drawn from with replacement: a batch then depends on its key alone."""

    problems: Problem

    def batch(self, key: PRNGKeyArray, count: int) -> Problem:
        """`count` of the problems."""
        chosen = jax.random.randint(key, (count,), 0, len(self.problems.dt))
        return jax.tree.map(lambda leaf: leaf[chosen], self.problems)


class PairSource(AbstractSource):
    """Random triangle pairs, never the same."""

    spec: recipe.Pairs = eqx.field(static=True)
    model: Model = eqx.field(static=True)
    dtype: str = eqx.field(static=True)

    def batch(self, key: PRNGKeyArray, count: int) -> Problem:
        """`count` new pairs."""
        keys = jax.random.split(key, count)
        return jax.vmap(lambda own: random_pair(self.spec, own, model=self.model, dtype=self.dtype))(keys)
