"""The Shadow page: the record of a watched cluster."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.shadow import changes_frame, cycles_frame
from planner.cluster.relocation import Relocation
from planner.shadow.record import (
    Cause,
    Deviation,
    NextCycle,
    ShadowCycle,
    ShadowRecord,
    Split,
    write_next,
)
from planner.web.live_history import watched_clusters

Page = Callable[..., AppTest]
A, B, C = (f"acme/orders/0x{low:08x}_0x{low + 0x40000000:08x}" for low in (0, 0x40000000, 0x80000000))


def cycle(number: int, **changes: object) -> ShadowCycle:
    made = ShadowCycle(
        cluster="east",
        number=number,
        from_ms=1_800_000_000_000 + number * 60_000,
        to_ms=1_800_000_005_000 + number * 60_000,
        leader="b1:8080",
        shedder="ThresholdShedder",
        predicted=(Relocation(A, "b1:8080", "b2:8080", ("b2:8080", "b3:8080")),),
        actual=(Relocation(A, "b1:8080", "b3:8080"),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


WRONG = cycle(
    2,
    actual=(Relocation(B, "b1:8080"),),
    predicted_splits=(Split(C, (0x90000000,)),),
    actual_splits=(Split(C, (0x90000000,)),),
    differences=(Deviation(A, "stayed", Cause.LATE_REPORT), Deviation(B, "unloaded", Cause.MANUAL)),
    in_time=False,
)
IDLE = cycle(3, predicted=(), actual=())


@pytest.fixture
def histories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLANNER_HISTORIES", str(tmp_path / "histories"))
    return tmp_path / "histories"


def shown(test: AppTest) -> str:
    return "\n".join(str(p.value) for p in [*test.markdown, *test.caption, *test.info, *test.warning, *test.error])


def test_without_a_record_the_page_says_how_to_get_one(page: Page, histories: Path) -> None:
    test = page("shadow")
    assert not test.exception
    assert "No predictions recorded." in shown(test)
    assert "watch --admin-url" in test.code[0].value
    (histories / "cluster=east").mkdir(parents=True)
    assert "No predictions recorded." in shown(page("shadow"))


def test_a_watched_history_among_others_is_found(page: Page, histories: Path) -> None:
    """A folder of histories holds clusters, or histories that do; *Replay* and *Shadow* read both."""
    ShadowRecord(histories / "prod" / "cluster=west").add(cycle(1, cluster="west"))
    assert "No predictions recorded." not in shown(page("shadow"))
    ShadowRecord(histories / "cluster=east").add(cycle(1))
    assert list(watched_clusters()) == ["east", "west"]


def test_cycles_score_and_the_last_one_in_detail(page: Page, histories: Path) -> None:
    for each in (cycle(1), WRONG, IDLE):
        ShadowRecord(histories / "cluster=east").add(each)
    test = page("shadow")
    assert not test.exception
    assert test.query_params["cluster"] == "east"
    assert [(m.label, m.value) for m in test.metric] == [
        ("Cycles as predicted", "66.7 %"),
        ("With unloads", "50.0 %"),
        ("Inputs captured in time", "100.0 %"),
        ("Destinations", "100.0 %"),
        ("Splits", "100.0 %"),
    ]
    assert "1 of 2 cycles as predicted; mispredicted: 2." in shown(test)
    assert test.header[-1].value == "Cycle 2"
    test.toggle[0].set_value(False).run()
    assert test.header[-1].value == "Cycle 3"
    assert "As predicted, nothing was unloaded or split." in shown(test)


def test_the_next_cycle_is_told(page: Page, histories: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    folder = histories / "cluster=east"
    unload = Relocation(A, "b1:8080", "", ("b2:8080", "b3:8080"), may_stay=True)
    write_next(folder, NextCycle(now_ms, now_ms + 30_000, False, "AvgShedder", (unload,), (Split(C, None),)))
    test = page("shadow")
    assert not test.exception
    assert "No complete cycle yet." in shown(test)
    assert "AvgShedder decides in about" in shown(test)
    assert "the exact time is known after the first unload" in shown(test)
    rows = test.dataframe[0].value
    assert rows["predicted"].tolist() == ["to b2:8080 or b3:8080, or stays", "split at ?"]
    write_next(folder, NextCycle(now_ms - 600_000, now_ms, True, "AvgShedder"))
    test = page("shadow")
    assert "The watch seems to have stopped" in shown(test)
    assert "No unloads or splits predicted." in shown(test)


def test_a_watch_that_can_see_nothing_in_time_is_told(page: Page, histories: Path) -> None:
    folder = histories / "cluster=east"
    write_next(folder, NextCycle(1, 2, True, "AvgShedder", too_seldom="Captures are 10 s apart."))
    assert "Captures are 10 s apart." in [warning.value for warning in page("shadow").warning]
    write_next(folder, NextCycle(1, 2, True, "AvgShedder"))
    assert not page("shadow").warning


def test_brokers_are_named_without_their_domain(page: Page, histories: Path) -> None:
    one, two, three = (f"b{number}.messaging.svc.example:8080" for number in range(3))
    unload, folder = Relocation(A, one, two, (two, three)), histories / "cluster=east"
    ShadowRecord(folder).add(cycle(1, leader=one, predicted=(unload,), actual=(unload,)))
    write_next(folder, NextCycle(1, 2, True, "AvgShedder", (unload,)))
    following, cycles, last = (found.value for found in page("shadow").dataframe)
    assert following["predicted"].tolist() == ["to b1 or b2"]
    assert cycles["leader"].tolist() == ["b0"]
    assert last[["from", "actual"]].to_numpy().tolist() == [["b0", "to b1"]]


def test_one_of_several_clusters(page: Page, histories: Path) -> None:
    ShadowRecord(histories / "cluster=east").add(cycle(1))
    ShadowRecord(histories / "cluster=west%2F1").add(cycle(1, cluster="west/1"))
    test = page("shadow", cluster="west/1")
    assert test.selectbox[0].value == "west/1"
    test = page("shadow", cluster="north")
    assert "is not a valid value for “Cluster”" in shown(test)
    assert test.selectbox[0].value == "east"


def test_no_choice_of_a_cluster_is_lost(page: Page, histories: Path) -> None:
    for name in ("east", "north", "west"):
        ShadowRecord(histories / f"cluster={name}").add(cycle(1, cluster=name))
    test = page("shadow")
    for name in ("west", "north", "east"):
        test.selectbox[0].set_value(name).run()
        assert test.selectbox[0].value == name
        assert test.query_params["cluster"] == name


def test_a_link_shows_its_cycle_when_others_have_followed(page: Page, histories: Path) -> None:
    for each in (cycle(1), WRONG, IDLE):
        ShadowRecord(histories / "cluster=east").add(each)
    assert "Cycle 2" in [part.value for part in page("shadow").header]
    assert "Cycle 1" in [part.value for part in page("shadow", cycle="1").header]
    assert "Cycle 3" in [part.value for part in page("shadow", cycle="3").header]
    unknown = page("shadow", cycle="<b>9")
    assert "Cycle 2" in [part.value for part in unknown.header]
    assert "was not recorded; showing the latest cycle" in unknown.warning[0].value


def test_a_record_that_cannot_be_read(page: Page, histories: Path) -> None:
    (histories / "cluster=east").mkdir(parents=True)
    (histories / "cluster=east" / ".shadow.jsonl").write_bytes(b"\xff\n[]\n")
    test = page("shadow")
    assert not test.exception
    assert "No complete cycle yet." in shown(test)


def test_rows_of_cycles_and_of_their_bundles() -> None:
    rows = cycles_frame([WRONG, cycle(1)])
    assert rows["cycle"].tolist() == [2, 1]
    assert rows["as predicted"].tolist() == ["no", "yes"]
    assert rows["likely reason"].tolist() == ["late report, manual unload", ""]
    bundles = changes_frame(WRONG)
    assert bundles["actual"].tolist() == ["stayed", "to no broker yet", "split at 0x90000000"]
    assert bundles["predicted"].tolist() == ["to b2:8080 or b3:8080", "stays", "split at 0x90000000"]
    assert bundles["likely reason"].tolist() == ["late report", "manual unload", ""]
