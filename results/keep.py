"""Keeps results here, and judges those that are kept by the claims as they are judged today.

`python results/keep.py FOLDER --commit C --hardware WORDS` takes over the documents of a reproduction, deterministic
numbers in full and others with six digits; `--into quick` puts them into results/quick. Without a folder nothing
is taken over. Either way the claims of every kept document are computed anew from its numbers, after the rates over
seeds have been put into the parts that use them.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fluxforge.paper import PARTS, read_documents, round_document
from fluxforge.paper.studies._records import select_rates
from fluxforge.run.result import to_document

HERE = Path(__file__).parent
# Which recipes of `rates` a part judges by.
USES = {"symbolic": ("first-order", "first-order-pinn"), "higher-order": ("midpoint", "two-hop")}


def main() -> None:
    """Take over, then judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--commit", default="")
    parser.add_argument("--hardware", default="")
    parser.add_argument("--into", default="", choices=("", "quick"))
    asked = parser.parse_args()
    if asked.folder is not None:
        for name, document in read_documents(asked.folder).items():
            head = {"format": document["format"], "format_version": document["format_version"]}
            head |= {"command": f"fluxforge reproduce {name} --preset {document['preset']}", "commit": asked.commit}
            head |= {"hardware": asked.hardware, "seed": 0}
            write(HERE / asked.into / f"{name}.json", head | round_document(name, document))
    for folder in (HERE, HERE / "quick"):
        for name in read_documents(folder):
            judge(folder / f"{name}.json", name)


def judge(path: Path, name: str) -> None:
    """The claims of a kept document, from its numbers and the rates that are kept."""
    document = json.loads(path.read_text(encoding="utf-8"))
    kept = HERE / "rates.json"
    if name in USES and kept.exists():
        tallies = select_rates(json.loads(kept.read_text(encoding="utf-8")), USES[name])
        document["rates"] = {recipe: to_document(tally) for recipe, tally in tallies.items()}
    document["claims"] = [asdict(claim) for claim in PARTS[name].judge(document)]
    write(path, document)


def write(path: Path, document: dict[str, Any]) -> None:
    """As the kept documents are laid out."""
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
