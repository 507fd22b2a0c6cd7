"""The fingerprint of a recipe: equal for two recipes that train the same networks."""

import hashlib
import json

from fluxforge._files import escape_unprintable, open_regular
from fluxforge.recipe._equation import diffusivity_of, mesh_files
from fluxforge.recipe._messages import Place, describe_value
from fluxforge.recipe._recipe import HEAT, Recipe, Table
from fluxforge.recipe._schema import from_table, to_dict

# Fields that do not influence what is trained.
_NOT_TRAINING = ("summary", "evaluation", "search", "expect", "order", "textbook")
# Fields added after the first runs were published, with their defaults: they count only if a recipe changes them, so
# that older recipes keep their fingerprints.
_LATER_FIELDS: dict[str, Table] = {
    "data": {
        "law": None,
        "noise": 0.0,
        "target": "step",
        "tolerance": 1e-6,
        "levels": 3,
        "cell_size": [1.0, 1.0],
        "jumps": 1.0,
    },
    "network": {"invariants": [], "form": "free", "integrator": "nested", "order": 1, "free_last": False},
    "loss.supervised": {"relative": False},
}


def fingerprint(recipe: Recipe) -> str:
    """Sixteen hexadecimal digits that depend on all fields of a recipe that influence training.

    They are the first digits of the SHA-256 of the recipe as JSON, without `summary`, `evaluation`, `search`, `expect`,
    `order`, `textbook` and `training.checkpoint_every`; mesh files count by their content, not by their paths. Raises
    RecipeError for a mesh file that cannot be read.
    """
    where = f"recipe {describe_value(recipe.name)}"
    # Once through the schema, so that 1 and 1.0 are the same number.
    plain = to_dict(from_table(to_dict(recipe), where))
    for field in _NOT_TRAINING:
        plain.pop(field, None)
    del plain["training"]["checkpoint_every"]
    for section, fields in _LATER_FIELDS.items():
        table = plain
        for name in section.split("."):
            table = table.get(name) or {}
        for field, usual in fields.items():
            if field in table and table[field] == usual:
                del table[field]
    if recipe.equation == HEAT:
        # As in recipes from before there were other equations, which had a `diffusivity` only.
        plain["diffusivity"] = diffusivity_of(recipe)
        del plain["equation"], plain["parameters"]
    if files := mesh_files(recipe):
        plain["data"]["files"] = [_digest(file, where) for file in files]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _digest(file: str, where: str) -> str:
    """SHA-256 of a mesh file's content."""
    try:
        with open_regular(file) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the name is not valid"
        raise Place(where, "data.files").refuse(f"'{escape_unprintable(file)}' cannot be read ({reason})") from error
