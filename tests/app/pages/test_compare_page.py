"""Compare follows the judge: overload first."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from planner.simulate.measures import MEASURES
from planner.workspace.samples import samples

Page = Callable[..., AppTest]
TWICE = {
    "peak_usage_percent": "peak (%)",
    "overloaded_broker_min": "overloaded (broker min)",
    "final_peak_usage_percent": "highest usage (%)",
    "final_std_percent": "deviation (points)",
    "topics_disconnected": "disconnected topics",
}
"""What the table of the judge and that of all measures both show."""


def test_compare_puts_overload_first(page: Page) -> None:
    test = page("compare", snapshot=next(one.digest for one in samples() if one.file == "story.zip")[:12])
    assert not test.exception
    key = next(d.value for d in test.dataframe if "peak (%)" in d.value.columns)
    names = [name.partition(" ")[0] for name in key["scenario"]]
    assert names[-1] == "TransferShedder"
    over = (key["overloaded (broker min)"] > 0).tolist()[:-1]
    assert over == sorted(over)
    assert len(set(over)) == 2
    (said,) = (part.value for part in test.markdown if "more overload" in part.value)
    overloaded = said.partition(" more overload")[0].rpartition(". ")[2]
    assert [name for name in names if f"**{name}**" in overloaded] == [
        name for name, above in zip(names, over, strict=False) if above
    ]
    next(t for t in test.toggle if t.label == "All measures").set_value(True).run()
    frame = next(d.value for d in test.dataframe if "measure" in d.value.columns)
    rows, labels = frame.set_index("measure"), {measure.name: measure.label for measure in MEASURES}
    for measure, column in TWICE.items():
        (row,) = rows[rows.index.str.contains(labels[measure], regex=False)].to_dict("records")
        for name, value in zip(key["scenario"], key[column], strict=True):
            (cell,) = (text for strategy, text in row.items() if name.startswith(strategy))
            assert float(cell.removeprefix("★ ").replace(",", "")) == pytest.approx(value, abs=0.051)
    assert frame[names[0]].str.contains("★").any()
    assert not frame["AvgShedder"].str.contains("★").any()
