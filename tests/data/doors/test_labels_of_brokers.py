"""How metrics name their broker: with a port, without one, and by an IPv6 address."""

import io

import pytest

from planner.doors.read import Given, read_given

_BUNDLE = 'bundle="t/n/0x00000000_0x80000000",metric="bundlesInfo"'


@pytest.mark.parametrize(
    ("label", "broker"),
    [
        ("mq-1.corp", "mq-1.corp:8080"),
        ("mq-1.corp:8080", "mq-1.corp:8080"),
        ("mq-1.corp:8443", "mq-1.corp:8443"),
        ("10.0.0.7", "10.0.0.7:8080"),
        ("10.0.0.7:8443", "10.0.0.7:8443"),
        ("2001:db8::10", "[2001:db8::10]:8080"),
        ("[2001:db8::10]", "[2001:db8::10]:8080"),
        ("[2001:db8::10]:8443", "[2001:db8::10]:8443"),
    ],
)
def test_a_label_is_the_broker_whether_it_has_a_port_or_not(label: str, broker: str) -> None:
    """A port was written behind the port of the label, and the broker left out."""
    text = "".join(
        f'{name}{{cluster="east",broker="{label}",{labels}}} {value}\n'
        for name, labels, value in (
            ("pulsar_lb_cpu_usage", 'metric="loadBalancing"', 81.5),
            ("pulsar_lb_bandwidth_in_usage", 'metric="loadBalancing"', 12.5),
            ("pulsar_bundle_msg_rate_in", _BUNDLE, 1200.0),
            ("pulsar_bundle_msg_throughput_in", _BUNDLE, 1.2e6),
        )
    )
    reading = read_given([Given("metrics.txt", io.BytesIO(text.encode()))])
    assert reading.snapshot is not None, reading.missing
    assert list(reading.snapshot.brokers.name) == [broker]
    assert not reading.contradictions
