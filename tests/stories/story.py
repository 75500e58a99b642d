"""Stories: what happens to a cluster, written as an operator would write it, with what to expect.

A story is a text file. It opens with a sentence after `#`. Then come a cluster, settings, edits, cycles and
expectations. Below `----` is the result of the simulation, which `pytest tests/stories --rewrite` updates.

| Line | Meaning |
|---|---|
| `sample FILE` | the cluster of a sample |
| `generate seed=3 brokers=8 bundles=120 ...` | a generated cluster, by the fields of `ClusterSpec` |
| `brokers 0.9 0.5 0.2` | brokers by their CPU usage, `b1:8080` and on |
| `bundles 1: 20 10 10` | MiB/s of the bundles of a broker of those |
| `started 4: 10` | minutes since a broker of those was started; the others run for a month |
| `network 2: 0.1` | network speed of a broker of those, Gbit/s; the others have 10 |
| `manager extensible`, `release 3.0.7` | who decides |
| `set NAME = VALUE` | a setting of the cluster |
| `change NAME = VALUE` | a setting of the scenario |
| `drain broker: broker=b1:8080, at_min=5` | an edit, by its kind and its fields |
| `run 30 cycles, seed 1` | how long, and what chance decides |
| `expect MEASURE <= NUMBER` (`>=`, `=`) | a measure of the simulation |
| `expect settled` | nothing is shed in the last cycle |
| `expect finding CODE`, `expect no finding CODE` | what the diagnosis says |
| `expect broker b4:8080 >= 20 %` (`<=`) | usage of a broker at the end |
"""

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.pulsar.manager.class_names import in_full
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.registry import EDITS
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, scenario_from_json
from planner.simulate.summary import summary
from planner.simulate.trace import Trace
from planner.workspace.opening import open_snapshot
from tests.app.simulate.traces import START_MS, cluster

RULE: Final = "----"
_KINDS: Final[Mapping[str, str]] = {
    str(one.default).replace("_", " "): str(one.default) for kind in EDITS for one in fields(kind) if one.name == "kind"
}
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"<=": operator.le, ">=": operator.ge, "=": operator.eq}
_SHOWN = (
    "peak_usage_percent",
    "final_peak_usage_percent",
    "final_std_percent",
    "shed",
    "moved",
    "splits",
    "topics_disconnected",
    "thrashing_percent",
    "overloaded_broker_min",
    "unserved",
)
_MONTH_MIN = 30 * 24 * 60
_MOST_EVENTS = 12


@dataclass
class Story:
    """A story as it is written."""

    sample: str = ""
    generated: dict[str, Any] = field(default_factory=dict)
    usage: list[float] = field(default_factory=list)
    bundles: dict[int, tuple[float, ...]] = field(default_factory=dict)
    started_min: dict[int, float] = field(default_factory=dict)
    network_gbps: dict[int, float] = field(default_factory=dict)
    manager: str = ""
    release: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    scenario: dict[str, Any] = field(default_factory=lambda: {"version": 1, "steps": [], "settings": {}})
    expected: list[str] = field(default_factory=list)

    def line(self, text: str) -> None:
        """Take a line in."""
        word, _, rest = text.partition(" ")
        kind, _, given = text.partition(":")
        if kind in _KINDS:
            edit = {"kind": _KINDS[kind], **_values(given)}
            self.scenario["steps"].append({"edit": edit})
            return
        read = getattr(self, f"_{word}", None)
        assert read is not None, f"No line of a story starts with '{word}'."
        read(rest)

    def _sample(self, name: str) -> None:
        self.sample = name

    def _generate(self, given: str) -> None:
        self.generated = _values(given.replace(" ", ", "))

    def _brokers(self, usages: str) -> None:
        self.usage = [float(part) for part in usages.split()]

    def _bundles(self, given: str) -> None:
        broker, _, sizes = given.partition(":")
        self.bundles[int(broker) - 1] = tuple(float(part) for part in sizes.split())

    def _started(self, given: str) -> None:
        broker, _, minutes = given.partition(":")
        self.started_min[int(broker) - 1] = float(minutes)

    def _network(self, given: str) -> None:
        broker, _, speed = given.partition(":")
        self.network_gbps[int(broker) - 1] = float(speed)

    def _manager(self, name: str) -> None:
        self.manager = name

    def _release(self, name: str) -> None:
        self.release = name

    def _set(self, given: str) -> None:
        name, _, value = given.partition(" = ")
        self.settings[name] = _value(value)

    def _change(self, given: str) -> None:
        name, _, value = given.partition(" = ")
        self.scenario["settings"][name] = _value(value)

    def _run(self, given: str) -> None:
        found = re.fullmatch(r"(\d+) cycles(?:, seed (\d+))?", given)
        assert found, given
        self.scenario |= {"cycles": int(found[1]), "seed": int(found[2] or 0)}

    def _expect(self, given: str) -> None:
        self.expected.append(given)

    def snapshot(self) -> Snapshot:
        """Return the cluster that it is about."""
        if self.sample:
            made = open_snapshot(self.sample)[1]
        elif self.generated:
            given = dict(self.generated)
            seed = given.pop("seed", 1)
            made = generate(ClusterSpec(**given, load_manager=LoadManager(self.manager or "modular")), seed)
        else:
            manager = LoadManager(self.manager or "modular")
            made = cluster(self.usage, self.bundles or None, load_manager=manager)
        if self.release:
            made = replace(made, info=replace(made.info, pulsar_version=self.release))
        brokers, count = made.brokers, len(made.brokers)
        if self.started_min:
            minutes = np.array([self.started_min.get(at, _MONTH_MIN) for at in range(count)])
            brokers = replace(brokers, started_at_ms=(START_MS - minutes * 60_000).astype(np.int64))
        if self.network_gbps:
            speed = np.array([self.network_gbps.get(at, 10.0) for at in range(count)]) * 1e6
            brokers = replace(brokers, bandwidth_in_limit_kbit_per_s=speed, bandwidth_out_limit_kbit_per_s=speed)
        return replace(made.with_columns(brokers=brokers), settings=made.settings.changed(**in_full(self.settings)))

    def run(self) -> Trace:
        """Simulate it."""
        snapshot = self.snapshot()
        release = {"pulsar_version": self.release} if self.release else {}
        scenario: Scenario = scenario_from_json({**self.scenario, **release})
        return simulate(snapshot, scenario)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _values(text: str) -> dict[str, Any]:
    """Read `name=value` pairs with commas between them; a value with `|` in it is a list."""
    pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    return {
        name: [_value(one) for one in value.split("|") if one] if "|" in value else _value(value)
        for name, _, value in pairs
    }


def read(path: Path) -> tuple[Story, str, str]:
    """Return a story, the text above the rule, and what stands below it."""
    above, _, below = path.read_text(encoding="utf-8").partition(f"{RULE}\n")
    story = Story()
    for line in above.splitlines():
        if line.strip() and not line.startswith("#"):
            story.line(line.strip())
    return story, above, below


def told(trace: Trace) -> str:
    """Return what a simulation said, as the lower part of a story."""
    numbers = summary(trace)
    lines = [f"scenario: {'; '.join(edit.phrase() for edit in trace.scenario.edits) or 'as captured'}"]
    for name in _SHOWN:
        value = getattr(numbers, name)
        lines.append(f"{name} = {value:.1f}" if isinstance(value, float) else f"{name} = {value}")
    settled = numbers.settled_after_cycles
    lines.append("settled: no" if settled is None else f"settled: after {settled} cycles")
    lines += [f"finding: {one.code} ({one.severity})" for one in diagnose(trace)]
    lines += _events(trace)
    return "\n".join(lines) + "\n"


def _events(trace: Trace) -> Iterator[str]:
    """Yield the first events, a line each."""
    events = [(cycle.index + 1, event) for cycle in trace.cycles for event in cycle.events if event.bundle]
    for cycle, event in events[:_MOST_EVENTS]:
        went = f"{event.source or '-'} -> {event.destination or '-'}" if event.kind != "split" else event.source
        yield f"cycle {cycle}: {event.kind} {event.bundle} {went}"
    if len(events) > _MOST_EVENTS:
        yield f"and {len(events) - _MOST_EVENTS} more"


def failures(story: Story, trace: Trace) -> list[str]:
    """Return the expectations that do not hold, each with what was found."""
    codes = {finding.code for finding in diagnose(trace)}
    numbers, wrong = summary(trace), []
    for text in story.expected:
        words = text.split()
        if words[0] == "finding":
            good, found = words[1] in codes, str(sorted(codes))
        elif words[:2] == ["no", "finding"]:
            good, found = words[2] not in codes, str(sorted(codes))
        elif words == ["settled"]:
            good, found = numbers.settled_after_cycles is not None, "the last cycle sheds"
        elif words[0] == "broker":
            last = trace.cycles[-1]
            usage = dict(zip(last.view.brokers.name, last.state.usage.tolist(), strict=True))
            value = usage[words[1]] * 100
            good, found = _COMPARE[words[2]](value, float(words[3])), f"{value:.1f} %"
        else:
            value = getattr(numbers, words[0])
            good, found = _COMPARE[words[1]](value, float(words[2])), str(value)
        if not good:
            wrong.append(f"expect {text}: {found}")
    return wrong
