"""Objects, maps and lists as Java prints them become what JSON would have said, or nothing."""

import io
from pathlib import Path
from typing import Any

import pytest

from planner.doors.java_text import value_of
from planner.doors.read import Given, read_given, read_outputs

INPUTS = Path(__file__).parent / "inputs"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a=b, c=1}", {"a": "b", "c": 1}),
        ("Name(a=[x, y], b={k=v}, c=null)", {"a": ["x", "y"], "b": {"k": "v"}, "c": None}),
        ("Name{a=1.5, b=true, c=[]}", {"a": 1.5, "b": True, "c": []}),
        ("{sh/a=b/0x0_0x1=Of(x=1)}", {"sh/a=b/0x0_0x1": {"x": 1}}),
        (
            "p one    Data(primary=[mq-[23]\\.mq.*, a.{1,2}(b|c)])",
            {"p one": {"primary": ["mq-[23]\\.mq.*", "a.{1,2}(b|c)"]}},
        ),
        ("{roles=admin,proxy, name=x}", {"roles": "admin,proxy", "name": "x"}),
        ("{a=x, y, b=z}", {"a": "x, y", "b": "z"}),
        ("Name(a=1", None),
        ("Name(a=[1, 2)", None),
        ("Name()", None),
        ("{a}", None),
        ("plain text (with=brackets)", None),
        ("{a=" * 50 + "1" + "}" * 50, None),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert value_of(text) == value


def test_isolation_policies_of_a_map_are_those_of_json() -> None:
    made = read_outputs(
        INPUTS / "load_report/one_line_4_2.jsonl",
        INPUTS / "isolation/java_map_4_2.txt",
        INPUTS / "domains/java_map_3_0.txt",
    ).snapshot
    assert made is not None
    orders, other = made.policies.isolation
    assert (orders.name, orders.namespaces, orders.primary) == (
        "orders",
        ("shop/(orders|stock)", "a.{1,2}/b"),
        (r"mq-[23]\.mq.*",),
    )
    assert (other.name, other.secondary, other.min_limit, other.usage_threshold_percent) == ("p2", ("mq-1.*",), 1, 100)
    assert made.policies.failure_domains == {"zone-a": ("mq-0:8080", "mq-1:8080"), "zone-b": ("mq-2:8080",)}


def test_policies_of_a_namespace_as_java_prints_them() -> None:
    reading = read_outputs(
        INPUTS / "load_report/one_line_4_2.jsonl", INPUTS / "policies_of_namespace/java_2_8.txt", cluster="east"
    )
    assert reading.snapshot is not None
    [rate] = reading.snapshot.policies.dispatch_rates
    assert (rate.target, rate.rate.msg_per_period) == ("shop/stock", 1000)


def test_dispatch_limits_are_limits_and_no_settings_of_brokers() -> None:
    """Their fields are called like settings of brokers, for which they were taken."""
    names = ("namespace_4_2.txt", "topic_3_0.txt", "java_2_8.txt")
    reading = read_outputs(INPUTS / "load_report/one_line_4_2.jsonl", *(INPUTS / "dispatch_limit" / n for n in names))
    assert reading.snapshot is not None
    assert {(one.kind, one.target, one.rate.msg_per_period) for one in reading.snapshot.policies.dispatch_rates} == {
        ("dispatch", "shop/orders", 1000),
        ("subscription", "persistent://shop/orders/order-0", 5),
        ("replicator", "shop/orders", 7),
    }
    assert reading.snapshot.info.dynamic_settings is None
    assert "3 dispatch limits" in reading.found


def test_lookups_are_no_topics() -> None:
    reading = read_outputs(INPUTS / "lookups/partitioned_4_2.txt")
    assert not reading.found
    assert "use brokers namespaces for the owners" in reading.not_used[0]


def test_answers_to_other_commands_are_named_by_their_command() -> None:
    text = b"$ pulsar-admin --admin-url http://x:8080 --auth-params token:SECRET tenants list\npublic\nshop\n"
    reading = read_given([Given("pasted text", io.BytesIO(text))])
    assert reading.not_used == (
        "pasted text, line 2: the answer to tenants list, which the planner does not use (2 lines).",
    )
