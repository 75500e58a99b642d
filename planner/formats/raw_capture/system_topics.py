"""The system topics of the extensible load manager in a raw capture: `system-topics.json`, messages as read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.cluster.pulsar_json import SYSTEM_TOPICS
from planner.formats.raw_capture.answers import Answers

_STEM = "system-topics"


@dataclass(frozen=True)
class SystemTopics:
    """The last message of each key at the moment of the capture; a key that was deleted is absent.

    Attributes:
        loads: `BrokerLoadData` by broker id.
        top_bundles: `TopBundlesLoadData` by broker id.
        ownership: `ServiceUnitStateData` by bundle name.
    """

    loads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    top_bundles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    ownership: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def _last(messages: Any, captured_at_ms: int) -> dict[str, Mapping[str, Any]]:
    """Return the last value of each key that is not younger than the capture; the first one where all are younger."""
    last: dict[str, Mapping[str, Any]] = {}
    late: set[str] = set()
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, dict) or not isinstance(message.get("key"), str):
            continue
        key, value, at = message["key"], message.get("value"), message.get("publish_time_ms")
        if isinstance(at, int) and at > captured_at_ms > 0:
            if key in last or key in late:
                continue
            late.add(key)
        last[key] = value if isinstance(value, dict) else {}
    return {key: value for key, value in last.items() if value}


def read_system_topics(answers: Answers, captured_at_ms: int) -> SystemTopics:
    """Return what the system topics said at the moment of the capture; nothing when they were not read."""
    content = answers.json(_STEM, dict, "Data that only the system topics have is missing or estimated.") or {}
    topics = content.get("topics")
    found = {
        name: _last(messages, captured_at_ms)
        for name, ending in SYSTEM_TOPICS.items()
        for topic, messages in (topics.items() if isinstance(topics, dict) else ())
        if topic.endswith(ending)
    }
    return SystemTopics(**found)
