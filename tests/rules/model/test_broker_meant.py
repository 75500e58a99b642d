"""A name that no broker has, and the broker that was meant."""

import pytest

from planner.cluster.broker_meant import broker_meant, how_to_name

BROKERS = ("mq-0.mq.corp:8080", "Mq-1.mq.corp:8443", "[2001:db8::10]:8080", "both.corp:8080", "both.corp:8443")


@pytest.mark.parametrize(
    ("written", "broker"),
    [
        ("mq-0.mq.corp", "mq-0.mq.corp:8080"),
        ("mq-0", "mq-0.mq.corp:8080"),
        ("MQ-0.MQ.CORP:8080", "mq-0.mq.corp:8080"),
        ("mq-1.mq.corp:6651", "Mq-1.mq.corp:8443"),
        ("https://mq-1.mq.corp:8443/", "Mq-1.mq.corp:8443"),
        (" 'mq-0.mq.corp:8080' ", "mq-0.mq.corp:8080"),
        ("2001:db8:0::10", "[2001:db8::10]:8080"),
        ("[2001:DB8::10]:6650", "[2001:db8::10]:8080"),
        ("both.corp", ""),
        ("mq-2.mq.corp:8080", ""),
        ("mq", ""),
        ("", ""),
    ],
)
def test_a_name_is_of_the_only_broker_that_it_may_mean(written: str, broker: str) -> None:
    assert broker_meant(written, BROKERS) == broker
    remedy = f"Write {broker}." if broker else f"Choose one of its brokers, such as {BROKERS[0]}."
    assert how_to_name(written, BROKERS) == remedy


def test_without_brokers_none_is_named() -> None:
    assert how_to_name("mq-0", ()) == "Choose one of its brokers."
