"""Every box of every page is set to a second value and back: what it shows, the address and the content follow.

The boxes are those that a page really shows, so that new ones are covered without a change here.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import ButtonGroup, Multiselect, Selectbox

from planner.replay import jobs
from planner.shadow.record import ShadowRecord
from planner.web import registry
from planner.workspace.samples import samples
from tests.app.pages import test_advisor_page, test_shadow_page
from tests.data.replay.replays import make_history

pytestmark = pytest.mark.usefixtures("untried_remedies")
SEARCHING = {"best_plan", "failure_review", "what_if"}
"""Pages that search for a plan or simulate losses at each choice: with three brokers at once, with five for seconds."""
Page = Callable[..., AppTest]
Boxes = dict[str, Any]
KINDS = (
    "selectbox", "multiselect", "button_group", "number_input", "text_input", "slider", "select_slider", "toggle",
    "checkbox",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _options_by_their_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options are named as a person sees them: AppTest knows their words, and not what stands for them."""
    for kind in (Selectbox, Multiselect, ButtonGroup):
        original: Any = vars(kind)["format_func"].fget

        def words(self: Any, original: Any = original) -> Callable[[Any], str]:
            return lambda value: value if value in self.options else original(self)(value)

        monkeypatch.setattr(kind, "format_func", property(words))


def boxes(test: AppTest) -> Boxes:
    """Everything that can be set, by a name that stays from run to run."""
    return {
        f"{kind} {box.key or box.label}": box
        for kind in KINDS
        for box in cast("list[Any]", test.get(kind))
        if not box.proto.disabled and not box.form_id
    }


def value_of(box: Any) -> Any:
    """What a box shows, in the words of its options."""
    if isinstance(box, Selectbox):
        return None if box.value is None else box.format_func(box.value)
    if isinstance(box, Multiselect | ButtonGroup):
        return list(box.formatted_values if isinstance(box, ButtonGroup) else map(box.format_func, box.value))
    return box.value


def another(box: Any) -> Any:
    """Another value for a box; None when it has one only."""
    now = value_of(box)
    if isinstance(box, Selectbox):
        return next((option for option in box.options if option != now), None)
    if isinstance(box, Multiselect):
        return [option for option in box.options if option not in now][:1] or now[:-1] if box.options else None
    if isinstance(box, ButtonGroup):
        return next(([option] for option in box.options if [option] != now), None)
    if isinstance(now, bool):
        return not now
    if isinstance(now, int | float):
        step = box.proto.step or 1
        return type(now)(now + step if now + step <= box.proto.max else now - step)
    return "0x10" if now != "0x10" else "0x20"


def put(test: AppTest, name: str, value: Any) -> None:
    """Set a box and run the page."""
    box = boxes(test)[name]
    if isinstance(box, ButtonGroup):
        value = value[0]
    box.set_value(value).run()
    assert not test.exception, f"{name} = {value!r}"


def content(test: AppTest) -> list[str]:
    """What is drawn: words and numbers."""
    words = [
        str(part.value)
        for part in (*test.markdown, *test.caption, *test.header, *test.subheader, *test.info, *test.metric)
    ]
    return [*words, *(frame.value.to_csv() for frame in test.dataframe)]


def drive(test: AppTest, name: str) -> bool:
    """Set one box to another value and back; return whether it has another value."""
    before, address, first = content(test), dict(test.query_params), value_of(boxes(test)[name])
    second = another(boxes(test)[name])
    if second is None or second == first:
        return False
    put(test, name, second)
    there = boxes(test)
    if first is None:  # a box that adds something and is empty again
        assert (dict(test.query_params), content(test)) != (address, before), f"{name}: {second} was lost"
        return True
    assert name in there, f"{name} went away"
    shown = value_of(there[name])
    assert shown == second, f"{name}: {second!r} was chosen, {shown!r} is shown"
    if "address-" in name or "setting-" in name:
        assert dict(test.query_params) != address, f"{name}: the address does not follow"
    put(test, name, first)
    shown = value_of(boxes(test)[name])
    assert shown == first, f"{name}: {first!r} was chosen again, {shown!r} is shown"
    assert content(test) == before, f"{name}: the content is not as before"
    if "address-" in name or "setting-" in name:
        assert dict(test.query_params) == address, f"{name}: the address is not as before"
    return True


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_history(tmp_path_factory.mktemp("every-widget") / "small")


@pytest.fixture
def opened(page: Page, history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], AppTest]:
    """Returns a function that opens a page with something to choose on it."""
    monkeypatch.setenv("PLANNER_HISTORIES", str(history.parent))
    monkeypatch.setattr("planner.web.replay_form._RUNNERS", {"processes": "Processes", "local": "One process"})

    def run(name: str) -> AppTest:
        file = "overload-shedder.json" if name in SEARCHING else "pip-364.json"
        snapshot = next(s.digest for s in samples() if s.file == file)[:12]
        if name == "shadow":
            monkeypatch.setenv("PLANNER_HISTORIES", str(tmp_path / "histories"))
            for cluster in ("east", "west"):
                record = ShadowRecord(tmp_path / "histories" / f"cluster={cluster}")
                for each in (test_shadow_page.cycle(1), test_shadow_page.WRONG, test_shadow_page.IDLE):
                    record.add(each)
            return page(name)
        if name == "advisor":
            for job in (test_advisor_page.FIRST, test_advisor_page.SECOND):
                test_advisor_page.finished(job, history / "none", test_advisor_page.NUMBERS)
            assert len(jobs.list_jobs()) == 2
            return page(name, job=test_advisor_page.FIRST)
        if name == "replay":
            return page(name)
        test = page(name, snapshot=snapshot)
        if name == "what_if":
            test.session_state["assumptions"] = True  # unfolds them
            test.run()
        return test

    return run


@pytest.mark.parametrize("name", registry.NAMES)
def test_every_box_follows_twice(opened: Callable[[str], AppTest], page: Page, name: str) -> None:
    page("overview", snapshot=next(s.digest for s in samples() if s.file == "avg-shedder.json")[:12])
    test = opened(name)
    assert not test.exception
    driven = [box for box in list(boxes(test)) if box in boxes(test) and drive(test, box)]
    assert driven, "the page has no box, or none with two values"


def _broken() -> None:
    """A choice whose default is the address, as pages had it once: every second choice is lost."""
    import streamlit as st  # noqa: PLC0415 - the function is a script of its own

    options = ["a", "b", "c"]
    chosen = st.selectbox("Lossy", options, options.index(st.query_params.get("x", "a")))
    st.query_params["x"] = chosen


def _forgetful() -> None:
    """A choice that nothing on the page or in the address shows."""
    import streamlit as st  # noqa: PLC0415

    st.session_state["address-x"] = "a"
    st.selectbox("Forgetful", ["a", "b"], key="address-x")


@pytest.mark.parametrize(("broken", "said"), [(_broken, "was chosen again"), (_forgetful, "is shown")])
def test_a_broken_box_is_found(broken: Callable[[], None], said: str) -> None:
    test = AppTest.from_function(broken).run()
    (name,) = boxes(test)
    with pytest.raises(AssertionError, match=said):
        drive(test, name)


def sources() -> Iterator[Path]:
    root = Path(__file__).parents[3]
    yield from (*(root / "planner").rglob("*.py"), *registry.pages_folder().glob("*.py"), root / "app.py")


@pytest.mark.parametrize(("touched", "home"), [("st.query_params", "address.py"), ("session_state", "session.py")])
def test_state_of_a_page_has_one_home(touched: str, home: str) -> None:
    assert {path.name for path in sources() if touched in path.read_text(encoding="utf-8")} == {home}


def test_every_page_is_registered_and_every_registered_page_is_there() -> None:
    assert sorted(registry.NAMES) == sorted(path.stem for path in registry.pages_folder().glob("*.py"))
    assert len({registry.page(name).title for name in registry.NAMES}) == len(registry.NAMES)
