"""What brokers serve shows how old they are, where nothing names their release."""

import io
import json
from pathlib import Path

from planner.cluster.releases import REFERENCE
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading
from planner.doors.together import NEWEST_WITH_CLUSTERS

REPORT = json.loads((Path(__file__).parent / "inputs" / "load_report" / "pretty_4_0.json").read_text())
RATES = {"msgRateIn": 1.0, "msgThroughputIn": 1.0, "msgRateOut": 1.0, "msgThroughputOut": 1.0, "averageMsgSize": 1.0}
TOPIC = {**RATES, "storageSize": 1, "publishers": [], "subscriptions": {}}
SPAN = "0x00000000_0xffffffff"


def read(own: str, version: str = "", release: str = "") -> Reading:
    """Read the report and the topics of a broker with a topic of a namespace and the health check of its own."""
    names = {"shop/orders": "persistent://shop/orders/t", own: f"persistent://{own}/healthcheck"}
    topics = {space: {SPAN: {"persistent": {name: TOPIC}}} for space, name in names.items()}
    stats = {f"{space}/{SPAN}": {**RATES, "topics": 1, "consumerCount": 0, "producerCount": 0} for space in names}
    given = {
        **REPORT,
        "webServiceUrl": "http://b-1:8080",
        "bundles": list(stats),
        "lastStats": stats,
        "numTopics": 2,
        "numBundles": 2,
        "numProducers": 0,
        "numConsumers": 0,
        "brokerVersionString": version,
    }
    texts = [json.dumps(given), json.dumps(topics)]
    files = [Given(f"{at}.json", io.BytesIO(text.encode())) for at, text in enumerate(texts)]
    return read_given(files, release=release, now_ms=1_700_000_000_000)


def test_a_namespace_with_a_cluster_shows_an_older_release() -> None:
    """The newest release was assumed, which refuses the topic of the health check; so it was called a contradiction."""
    reading = read("pulsar/east/b-1:8080")
    assert reading.snapshot is not None
    assert reading.snapshot.info.pulsar_version == NEWEST_WITH_CLUSTERS == "4.0.8"
    assert not [text for text in reading.contradictions if "not valid" in text]
    assert len(reading.snapshot.topics) == 2
    [release] = [one for one in reading.missing if one.kind == "release"]
    assert release.assumed == "Pulsar 4.0.8 is assumed, the newest that has namespaces with a cluster."


def test_nothing_is_shown_by_names_without_a_cluster() -> None:
    reading = read("pulsar/b-1:8080")
    [release] = [one for one in reading.missing if one.kind == "release"]
    assert release.assumed == f"Pulsar {REFERENCE.name} is assumed."


def test_a_release_that_is_named_counts() -> None:
    assert (one := read("pulsar/east/b-1:8080", version="3.0.7").snapshot) is not None
    assert one.info.pulsar_version == "3.0.7"
    refused = read("pulsar/east/b-1:8080", release="4.2.4")
    assert [text for text in refused.contradictions if "not valid" in text]
