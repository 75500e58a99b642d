"""Edited limits win or lose as the chains say, and the commands carry all of them."""

import pytest

from planner.cluster.errors import SettingError
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, Policies
from planner.pulsar.throttling.precedence import Level, Source, limit_chain
from planner.simulate.dispatch.edits import PLACES, LimitEdit, edited, setting_commands

TOPIC = "persistent://tenant/namespace/topic"
RATE = DispatchRate(10, 2000, 5, relative_to_publish_rate=True)
EVERY = [(level, place) for level, places in PLACES.items() for place in places]


@pytest.mark.parametrize(("level", "place"), EVERY)
def test_an_edit_is_in_force_where_it_was_made(level: Level, place: Source) -> None:
    edit = LimitEdit.about(f"{TOPIC}-partition-1", level, place, RATE, "sub")
    policies, config = edited((edit,), Policies(), Settings())
    winner = limit_chain(level, TOPIC, policies, config, "sub").winner
    assert winner is not None
    assert winner.source is place
    assert winner.rate is not None
    assert (winner.rate.msg_per_period, winner.rate.bytes_per_period) == (10, 2000)
    assert winner.rate.relative_to_publish_rate == (place is not Source.BROKER)
    gone = LimitEdit.about(TOPIC, level, place, DispatchRate(-1, -1), "sub")
    without = edited((gone,), policies, config)
    assert limit_chain(level, TOPIC, without[0], without[1], "sub").winner is None
    assert not without[0].dispatch_rates


def test_an_edit_replaces_what_was_set_there_only() -> None:
    first = LimitEdit.about(TOPIC, Level.TOPIC, Source.NAMESPACE, RATE)
    second = LimitEdit.about(TOPIC, Level.TOPIC, Source.LOCAL_TOPIC, DispatchRate(3))
    third = LimitEdit.about(TOPIC, Level.TOPIC, Source.GLOBAL_TOPIC, DispatchRate(4))
    policies, config = edited((first, second, third, second), Policies(), Settings())
    assert len(policies.dispatch_rates) == 3
    assert limit_chain(Level.TOPIC, TOPIC, policies, config).rate.msg_per_period == 3


def test_commands() -> None:
    base = "--msg-dispatch-rate 10 --byte-dispatch-rate 2000 --dispatch-rate-period 5 --relative-to-publish-rate"
    cases = {
        (Level.TOPIC, Source.LOCAL_TOPIC): f"topicPolicies set-dispatch-rate {TOPIC} {base}",
        (Level.TOPIC, Source.GLOBAL_TOPIC): f"topicPolicies set-dispatch-rate {TOPIC} {base} --global",
        (Level.TOPIC, Source.NAMESPACE): f"namespaces set-dispatch-rate tenant/namespace {base}",
        (Level.SUBSCRIPTION, Source.NAMESPACE): f"namespaces set-subscription-dispatch-rate tenant/namespace {base}",
        (Level.SUBSCRIPTION, Source.LOCAL_NAMED): (
            f"topicPolicies set-subscription-dispatch-rate {TOPIC} {base} --subscription 'my sub'"
        ),
        (Level.REPLICATOR, Source.LOCAL_TOPIC): f"topicPolicies set-replicator-dispatch-rate {TOPIC} {base}",
    }
    for (level, place), expected in cases.items():
        edit = LimitEdit.about(f"{TOPIC}-partition-0", level, place, RATE, "my sub")
        assert edit.commands() == (f"pulsar-admin {expected}",)
    removed = LimitEdit.about(TOPIC, Level.TOPIC, Source.NAMESPACE, DispatchRate(0, -1))
    assert removed.commands() == ("pulsar-admin namespaces remove-dispatch-rate tenant/namespace",)
    broker = LimitEdit.about(TOPIC, Level.BROKER, Source.BROKER, DispatchRate(7, 0)).commands()
    assert broker[0] == "pulsar-admin brokers update-dynamic-config --config dispatchThrottlingRateInMsg --value 7"
    assert len(broker) == 2
    assert setting_commands({"preciseDispatcherFlowControl": True})[0].endswith("--value true")


def test_a_setting_out_of_bounds_is_refused() -> None:
    with pytest.raises(SettingError):
        edited((LimitEdit.about(TOPIC, Level.TOPIC, Source.BROKER, DispatchRate(-7)),), Policies(), Settings())
