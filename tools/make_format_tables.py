"""Writes the tables of columns in `docs/formats.md` again, from the snapshot model.

python tools/make_format_tables.py
"""

from pathlib import Path

from planner.cluster.tables import BrokerTable, BundleTable, TopicTable, column_info

PAGE = Path(__file__).resolve().parents[1] / "docs" / "formats.md"
TABLES: dict[str, type] = {"brokers": BrokerTable, "bundles": BundleTable, "topics": TopicTable}


def table(kind: type) -> str:
    """Return the Markdown table of the columns of one table."""
    rows = ["| Column | Type | Unit | Meaning | Default |", "|---|---|---|---|---|"]
    for info in column_info(kind):
        default = "required" if info.required else "unknown" if info.may_be_unknown else f"`{info.default}`"
        rows.append(
            f"| `{info.name}` | {info.kind} | {info.unit} | {info.meaning} | {default.replace('``', 'empty')} |"
        )
    return "\n".join(rows)


def filled(page: str) -> str:
    """Return the page with every table between its marks made again."""
    for name, kind in TABLES.items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, rest = page.split(start)
        _, after = rest.split(end)
        page = f"{before}{start}\n{table(kind)}\n{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
