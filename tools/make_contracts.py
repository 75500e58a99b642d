"""Writes the tables of members in `docs/contracts.md` again, from the protocols.

python tools/make_contracts.py
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, get_type_hints

from planner.pulsar.placement.protocol import Placement
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.splitting.protocol import SplitAlgorithm
from planner.simulate.edits.running import Running, RunningCluster

PAGE = Path(__file__).resolve().parents[1] / "docs" / "contracts.md"
CONTRACTS: tuple[type, ...] = (Shedder, Placement, SplitAlgorithm, Running, RunningCluster)


def members(contract: type) -> Iterator[tuple[str, str]]:
    """Yield the members of a protocol, those of its bases first, each with the first sentence about it."""
    for base in reversed(contract.__mro__):
        if base is Protocol or not getattr(base, "_is_protocol", False):
            continue
        fields = dict(
            re.findall(r"^ +(\w+): (.+?)(?=^ +\w+: |\Z)", inspect.getdoc(base) or "", re.MULTILINE | re.DOTALL)
        )
        for name in dict.fromkeys([*get_type_hints(base), *vars(base)]):
            if name.startswith("_"):
                continue
            method = vars(base).get(name)
            if inspect.isfunction(method):
                asked = ", ".join(list(inspect.signature(method).parameters)[1:])
                yield f"{name}({asked})", (inspect.getdoc(method) or "").split("\n\n")[0]
            else:
                yield name, fields[name]


def table(contract: type) -> str:
    """Return the Markdown table of the members of a protocol."""
    rows = ["| Member | Meaning |", "|---|---|"]
    rows += [
        f"| `{name}` | {' '.join(meaning.split()).replace('|', chr(92) + '|')} |" for name, meaning in members(contract)
    ]
    return "\n".join(rows)


def filled(page: str) -> str:
    """Return the page with every table between its marks made again."""
    for contract in CONTRACTS:
        start, end = f"<!-- {contract.__name__} -->", f"<!-- end of {contract.__name__} -->"
        before, rest = page.split(start)
        _, after = rest.split(end)
        page = f"{before}{start}\n{table(contract)}\n{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
