"""Compare follows the judge: overload first."""

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from planner.workspace.samples import samples

Page = Callable[..., AppTest]


def test_compare_puts_overload_first(page: Page) -> None:
    test = page("compare", snapshot=next(one.digest for one in samples() if one.file == "story.zip")[:12])
    assert not test.exception
    assert "**AvgShedder** have more overload" in "\n".join(str(part.value) for part in test.markdown)
    key = next(d.value for d in test.dataframe if "peak (%)" in d.value.columns)
    assert [name.partition(" ")[0] for name in key["scenario"]][-2:] == ["AvgShedder", "TransferShedder"]
    assert key["overloaded (broker min)"].iloc[0] == 0
    next(t for t in test.toggle if t.label == "More measures").set_value(True).run()
    frame = next(d.value for d in test.dataframe if "measure" in d.value.columns)
    assert not frame["AvgShedder"].str.contains("★").any()
    assert frame["ThresholdShedder"].str.contains("★").any()
