"""Answers of several brokers below one command, as a loop of a shell prints them."""

import io

import pytest

from planner.doors.read import Given, read_given
from planner.doors.reading import Reading

LOW = "a/b/0x00000000_0x80000000    [broker_assignment=shared is_controlled=false is_active=true]\n"
HIGH = "a/b/0x80000000_0xffffffff    [broker_assignment=shared is_controlled=false is_active=true]\n"
LOOP = "$ for b in $(cat brokers); do {}pulsar-admin brokers namespaces c --url $b; done\n"


def read(text: str) -> Reading:
    return read_given([Given("pasted text", io.BytesIO(text.encode()))], now_ms=1)


def owners(reading: Reading) -> dict[str, str]:
    assert reading.snapshot is not None
    names = reading.snapshot.brokers.name
    pairs = zip(reading.snapshot.bundle_names, reading.snapshot.bundles.owner.tolist(), strict=True)
    return {bundle: names[at] for bundle, at in pairs}


@pytest.mark.parametrize("command", ["", LOOP.format("echo $b; ")], ids=["answers", "terminal"])
@pytest.mark.parametrize("name", ["{}\n", "{}:\n", "== {} ==\n"])
def test_the_name_of_a_broker_above_its_answer_counts(command: str, name: str) -> None:
    """The bundles of all brokers were those of one broker that does not exist, or were not used."""
    reading = read(f"{command}{name.format('mq-0:8080')}{LOW}{name.format('mq-1:8080')}{HIGH}")
    assert owners(reading) == {LOW.partition(" ")[0]: "mq-0:8080", HIGH.partition(" ")[0]: "mq-1:8080"}
    assert not reading.contradictions


def test_scrapes_below_the_names_of_their_brokers() -> None:
    scrape = '# TYPE pulsar_lb_cpu_usage gauge\npulsar_lb_cpu_usage{cluster="c",metric="loadBalancing"} '
    reading = read(f"mq-0:8080\n{scrape}31.0\nmq-1:8080\n{scrape}44.0\nmq-0:8080\n{LOW}mq-1:8080\n{HIGH}")
    assert reading.snapshot is not None
    table = reading.snapshot.brokers
    assert dict(zip(table.name, table.cpu_usage_percent.tolist(), strict=True)) == {"mq-0:8080": 31, "mq-1:8080": 44}


@pytest.mark.parametrize(
    "command",
    [
        LOOP.format(""),
        "$ for i in 0 1; do kubectl exec mq-$i -- bin/pulsar-admin brokers namespaces c --url mq-$i.mq:8080; done\n",
        "$ cat brokers | xargs -n 1 pulsar-admin brokers namespaces c --url\n",
    ],
)
def test_answers_of_a_loop_without_names_are_not_put_together(command: str) -> None:
    """They made one broker of all."""
    reading = read(f"{command}{LOW}{HIGH}")
    assert reading.snapshot is None
    assert any("A loop must print the name before each answer." in one for one in reading.assumed)


def test_the_fields_of_a_broken_line_of_a_log_are_apart() -> None:
    """Without the head of the line, the first setting was lost, and others took what follows into their value."""
    shedder = "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"
    lines = (
        f"Entries=9, x=NONE, loadBalancerEnabled=false, loadBalancerLoadSheddingStrategy={shedder}, lowerBou",
        "ndarySheddingEnabled=false, loadBalancerSheddingIntervalMinutes=1, loadBalancerOverrideBrokerNics=<null>, x=1",
    )
    text = "".join(f"  {line}\n" for line in lines)
    [found] = read(text).configurations
    assert found.values == {
        "loadBalancerEnabled": "false",
        "loadBalancerLoadSheddingStrategy": shedder,
        "lowerBoundarySheddingEnabled": "false",
        "loadBalancerSheddingIntervalMinutes": "1",
    }
    [found] = read(f"  {lines[0]}\n").configurations
    assert found.values == {"loadBalancerEnabled": "false", "loadBalancerLoadSheddingStrategy": shedder}
