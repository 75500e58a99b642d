"""Writes the tables of requests and nodes in `docs/capture.md` again, from the catalogue of the capture.

python tools/make_capture_tables.py
"""

from pathlib import Path

from planner.capture.catalogue import CATALOGUE, STORE_FOLDERS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "capture.md"


def requests() -> str:
    """Return the Markdown table of the requests."""
    rows = ["| GET | Requested | Permission | Provides | Without it |", "|---|---|---|---|---|"]
    for request in CATALOGUE:
        requested = f"{request.scope}; {request.when}" if request.when else str(request.scope)
        rows.append(f"| `{request.path}` | {requested} | {request.permission} | {request.gives} | {request.without} |")
    return "\n".join(rows)


def nodes() -> str:
    """Return the Markdown table of the nodes of the metadata store."""
    rows = ["| Node | Provides |", "|---|---|"]
    for folder in STORE_FOLDERS:
        below = " and below" if folder.below else ""
        rows.append(f"| `{folder.path}`{below} | {folder.gives} |")
    return "\n".join(rows)


def filled(page: str) -> str:
    """Return the page with both tables made again."""
    for name, table in (("requests", requests()), ("nodes", nodes())):
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, rest = page.split(start)
        _, after = rest.split(end)
        page = f"{before}{start}\n{table}\n{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
