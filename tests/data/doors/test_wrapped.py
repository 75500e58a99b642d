"""Lines that a terminal or a mail program broke at its width are joined again, or it is said that they are broken."""

import io
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.doors import read as read_module
from planner.doors.pieces import Assumed, Piece
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading
from planner.doors.wrapped import readings_of

INPUTS = Path(__file__).parent / "inputs"
AMBIGUOUS = {
    (90, "series_csv/victoria_terminal.txt"): "its command is broken, and its columns are taken from what they hold",
    (100, "series_csv/victoria_terminal.txt"): "its command is broken, and its columns are taken from what they hold",
    (132, "series_csv/victoria_terminal.txt"): "its command is as wide as the terminal, and so is each row",
}
WIDTHS = (67, 80, 90, 100, 115, 120, 132, 141)
RUNTIME = "loadBalancerSheddingIntervalMinutes    5\nloadBalancerLoadSheddingStrategy         {}\nbacklogQuota    10\n"


def broken(text: str, width: int) -> str:
    """Break lines as a terminal does."""
    lines = text.split("\n")
    return "\n".join(line[at : at + width] for line in lines for at in range(0, max(len(line), 1), width))


def read(text: str, name: str = "pasted text") -> Reading:
    return read_given([Given(name, io.BytesIO(text.encode()))], now_ms=1795225795494)


def pieces(text: str, name: str) -> list[str]:
    found: list[Piece] = list(read_module._pieces_of_file(Given(name, io.BytesIO(text.encode()))))
    return [repr(one).replace(repr(one.source), "") for one in found if not isinstance(one, Assumed)]


def long_inputs() -> Iterator[tuple[Path, int]]:
    """Yield the inputs that a terminal of some width breaks; one is broken already."""
    for path in sorted(INPUTS.rglob("*.*")):
        if path.stat().st_size < 60_000 and path.name != "docker_run.txt":
            text = path.read_text("utf-8", "replace")
            yield from ((path, width) for width in WIDTHS if broken(text, width) != text)


@pytest.mark.parametrize(("path", "width"), list(long_inputs()), ids=lambda one: getattr(one, "name", str(one)))
def test_a_terminal_changes_nothing(path: Path, width: int) -> None:
    text = path.read_text()
    found = pieces(broken(text, width), path.name)
    if (width, path.relative_to(INPUTS).as_posix()) in AMBIGUOUS:
        assert "NotUsed" in "".join(found)
    else:
        assert found == pieces(text, path.name)


def test_it_is_said_that_lines_were_joined() -> None:
    text = (INPUTS / "load_report" / "one_line_4_2.jsonl").read_text()
    reading = read(broken(text, 80))
    assert reading.snapshot is not None
    assert "pasted text: its lines were broken at 80 columns, and are joined again." in reading.assumed
    assert any("80 columns" in one for one in reading.snapshot.info.warnings)


@pytest.mark.parametrize("width", [72, 78, 80])
def test_the_number_at_the_end_of_a_sample_is_whole(width: int) -> None:
    """The beginning of a number is a number, so that the rest of it alone shows what happened."""
    start = 'pulsar_rate_in{cluster="east",namespace="shop/orders",topic="persistent://shop/orders/'
    topics = [f"{'o' * number}" for number in range(1, width)]
    lines = ["# TYPE pulsar_rate_in gauge", *(f'{start}{topic}"}} 1234567.0' for topic in topics)]
    text = "\n".join(lines) + "\n"
    assert pieces(broken(text, width), "scrape") == pieces(text, "scrape")


@pytest.mark.parametrize("cut", [20, 49, 66])
def test_a_class_name_is_not_cut(cut: int) -> None:
    name = "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"
    text = f"loadBalancerEnabled=true\nloadBalancerLoadSheddingStrategy={name}\nloadBalancerDebugModeEnabled=true\n"
    changed = broken(text, 32 + cut)
    (configuration,) = read(changed).configurations
    assert configuration.values["loadBalancerLoadSheddingStrategy"] == name
    assert configuration.values["loadBalancerDebugModeEnabled"] == "true"


@pytest.mark.parametrize("form", ["{}", RUNTIME])
def test_text_of_the_usual_kind_is_left_alone(form: str) -> None:
    """The longest line of a text may be as long as a terminal is wide, and misspelt names are nothing to join."""
    name = "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"
    comment = "#" + " word" * 20
    conf = (
        f"{comment[:80]}\nloadBalancerBrokerThresholdSheddderPercentage=20\nloadBalancerLoadSheddingStrategy={name}\n"
    )
    text = conf if form == "{}" else form.format(name)
    reading = read(text)
    assert not any("columns" in one for one in reading.assumed)
    found = [one for one in pieces(text, "x") if one.startswith("Configuration")]
    assert all(f"'loadBalancerLoadSheddingStrategy': '{name}'" in one for one in found)


def test_equally_long_commands_keep_their_answers() -> None:
    text = "".join(
        f"$ pulsar-admin namespaces get-anti-affinity-group shop/{name}\n{group}\n"
        for name, group in (("orders", "red"), ("stocks", "blue"))
    )
    assert pieces(text, "x") == [
        f"AntiAffinityGroup(source=, group='{group}', namespace='shop/{name}')"
        for name, group in (("orders", "red"), ("stocks", "blue"))
    ]


def test_words_that_a_mail_program_moved_to_the_next_line() -> None:
    path = INPUTS / "load_report" / "pretty_4_0.json"
    text = path.read_text()
    lines = [part for line in text.split("\n") for part in (textwrap.wrap(line, 72, break_long_words=False) or [""])]
    assert pieces("\n".join(lines), path.name) == pieces(text, path.name)


def test_what_cannot_be_joined_is_named() -> None:
    text = (INPUTS / "load_report" / "one_line_4_2.jsonl").read_text().split("\n")[0]
    at = text.index("0x4000")
    reading = read(f"{text[:at]}\n{text[at:]}\n{'x' * 4_000}")
    (why,) = [one for one in reading.not_used if "ends inside a text" in one]
    assert "Save the output to a file instead of copying it" in why


def test_lines_of_other_kinds_in_a_scrape_are_counted() -> None:
    text = (INPUTS / "metrics" / "scrape_4_2.prom").read_text()
    assert not read(text).not_used
    reading = read(text + "12\nfoo bar\n")
    assert any("2 lines of an unknown kind among the rest" in one for one in reading.not_used)


def test_a_scrape_of_equally_long_lines_is_read_once() -> None:
    """Topics that are called alike make lines of one length; reading a scrape again and again would take minutes."""
    names = [f"persistent://iot/home/dev-{at:07d}" for at in range(50)]
    lines = [f'pulsar_rate_in{{cluster="east",namespace="iot/home",topic="{name}"}} 12.5' for name in names]
    text = "\n".join(["# TYPE pulsar_rate_in gauge", *lines, "jvm_threads_current 42.0"])
    assert list(readings_of(text)) == []


@pytest.mark.parametrize("width", [100, 120])
def test_a_command_as_wide_as_a_terminal_is_not_joined_with_a_line_of_its_own(width: int) -> None:
    """The value was `7loadBalancerEnabled=true`, which is none, and both settings were lost."""
    command = "kubectl set env statefulset/mq-broker {}PULSAR_PREFIX_loadBalancerSheddingIntervalMinutes=7"
    whole = command.format("-n " + "m" * (width - len(command) - 2) + " ")
    assert len(whole) == width
    [first, second] = read(f"{whole}\nloadBalancerEnabled=true\n").configurations
    assert dict(first.values) == {"loadBalancerSheddingIntervalMinutes": "7"}
    assert dict(second.values) == {"loadBalancerEnabled": "true"}


@pytest.mark.parametrize("width", [64, 75, 80])
def test_a_command_that_was_broken_is_whole_again(width: int) -> None:
    """The rest of the command was a line of the answer, or the name had a blank in it, without a word."""
    command = "$ pulsar-admin namespaces get-anti-affinity-group "
    namespace = "shop/" + "o" * (width - len(command) - 2) + "rders"
    text = f'{command}{namespace}\n"red"\n'
    assert broken(text, width) != text
    assert pieces(broken(text, width), "x") == [f"AntiAffinityGroup(source=, group='red', namespace='{namespace}')"]


def test_a_log_line_as_wide_as_the_terminal_does_not_swallow_an_answer() -> None:
    command = "$ pulsar-admin --admin-url http://10.2.0.12:8080 broker-stats "
    log = "2026-11-25T03:12:11,004+0000 [main] WARN  x.y.Z - some warning"
    assert len(command) == len(log)
    topics = '{"shop/orders": {"0x00000000_0xffffffff": {"persistent": {}}}}'
    found = pieces(f"{command}\ntopics\n{log}\n{topics}\n", "x")
    assert found == pieces(f"{command}topics\n{log}\n{topics}\n", "x")
    assert "'0x00000000_0xffffffff'" in found[0]


def test_two_policies_as_wide_as_the_terminal_stay_two() -> None:
    policy = "AutoFailoverPolicyDataImpl(policyType=min_available, parameters={min_limit=1})"
    rest = f"(namespaces=[shop/st.*], primary=[b1], secondary=[b], autoFailoverPolicy={policy})"
    rows = [f"{name}    NamespaceIsolationDataImpl{rest}" for name in ("p1", "p2")]
    assert len(rows[0]) % 2 == 0
    text = "\n".join([*rows, ""])
    [found] = pieces(broken(text, len(rows[0]) // 2), "x")
    assert "'p1'" in found
    assert "'p2'" in found


def test_a_class_at_the_edge_of_the_terminal_is_not_joined_with_the_next_setting() -> None:
    name = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
    rows = ["brokerName    mq-0", f"loadManagerClassName    {name}", "metadataSyncEventTopic    ", "zk    " + "x" * 100]
    [found] = pieces(broken("\n".join(rows), len(rows[1])), "runtime.txt")
    assert f"'loadManagerClassName': '{name}'" in found


def test_lines_that_a_terminal_cut_are_named() -> None:
    """What is left of a number is a number."""
    start = 'pulsar_rate_in{cluster="east",namespace="shop/orders",topic="persistent://shop/orders/'
    lines = [f'{start}{"o" * number}"}} 1234567.0' for number in (1, 2, 3, 4)]
    assert not any("column" in one for one in read("\n".join(lines)).assumed)
    reading = read("\n".join(line[:100] for line in lines))
    assert any("its longest lines end at column 100." in one for one in reading.assumed)


def test_a_class_or_a_unit_that_was_cut_is_named() -> None:
    rows = (
        "loadBalancerEnabled    true\nloadBalancerLoadSheddingStrategy    org.apache.pulsar.broker.loadbalance.impl.Thr"
    )
    assert any("the beginning of the name of a class" in one for one in read(rows).not_used)
    unit = 'Environment=PULSAR_PREFIX_loadBalancerEnabled=true "PULSAR_PREFIX_loadBa\n'
    assert any("ends inside quotation marks" in one for one in read(unit).not_used)


@pytest.mark.parametrize("name", ["load_report/pretty_4_0.json", "load_report/one_line_4_2.jsonl", "brokers/rest.json"])
def test_lines_are_joined_only_where_something_was_not_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON that was read as a whole was tried with its lines joined, which took as long as reading it."""
    tried: list[str] = []

    def spy(text: str) -> Iterator[list[tuple[str, int]]]:
        tried.append(text)
        return iter(())

    monkeypatch.setattr(read_module, "readings_of", spy)
    text = (INPUTS / name).read_text()
    for given in (text, text + "what is this line\n"):
        read_given([Given("x", io.BytesIO(given.encode()))], now_ms=1)
    assert tried == [text + "what is this line\n"]
