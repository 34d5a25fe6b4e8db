"""Break the code on purpose, one thing at a time: some test must fail for each.

python tests/mutations.py            all mutants; exit 1 if one survives
python tests/mutations.py rotary     those whose name contains the word
python tests/mutations.py --record   the same, and remember which test killed each (do so after adding some)

Mutants stand beside the suites that kill them, in the `mutants.py` of each folder of tests; `mutate.py` is how they
are tried.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import mutate

ROOT = Path(__file__).resolve().parent.parent


def all_mutants() -> list[mutate.Mutant]:
    """The mutants of all folders."""
    found: list[mutate.Mutant] = []
    for path in sorted((ROOT / "tests").rglob("mutants.py")):
        spec = importlib.util.spec_from_file_location(f"mutants_of_{path.parent.name}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += module.MUTANTS
    return found


if __name__ == "__main__":
    sys.exit(mutate.main(all_mutants(), ROOT, mutate.Table(ROOT / "tests" / "mutation_killers.json")))
