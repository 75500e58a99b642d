"""Values of settings in a wrong unit: named with the value that was meant, and nothing said of sensible ones."""

from typing import Final

import pytest

from planner.cluster.releases import RELEASES, release
from planner.cluster.settings import Settings
from planner.explain.diagnosis import diagnose
from planner.explain.setting_rules import limit_overflows, wrong_unit
from planner.explain.units_meant import SENSIBLE
from planner.pulsar.manager.class_names import MANAGER_CLASSES
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from tests.app.simulate.traces import cluster

NIC: Final = "loadBalancerOverrideBrokerNicSpeedGbps"
SHEDDING: Final = "loadBalancerSheddingIntervalMinutes"
STRATEGY: Final = "loadBalancerLoadSheddingStrategy"
UNIFORM: Final = {STRATEGY: "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"}
OVERLOAD: Final = {STRATEGY: "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder"}
EXTENSIBLE: Final = {
    "loadManagerClassName": next(name for name in MANAGER_CLASSES.values() if "Extensible" in name),
    STRATEGY: "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder",
}
ANOTHER_UNIT: Final = {"ms", "s", "min", "bytes", "bytes/s", "MiB/s", "MiB/s in+out", "Gbit/s per NIC", "ratio"}
"""Units that are easily taken for another one."""


@pytest.mark.parametrize(
    ("name", "value", "meant", "others"),
    [
        (NIC, 1000, 1, {}),
        (NIC, 25_000, 25, {}),
        (NIC, 10_000_000, 10, {}),
        (NIC, 10**10, 10, {}),
        (SHEDDING, 60_000, 1, {}),
        (SHEDDING, 3600, 60, {}),
        ("loadBalancerSheddingGracePeriodMinutes", 1800, 30, {}),
        ("loadBalancerReportUpdateMaxIntervalMinutes", 900, 15, {}),
        ("loadBalancerReportUpdateMinIntervalMillis", 5, 5000, {}),
        ("loadBalancerHostUsageCheckIntervalMinutes", 60, 1, {}),
        ("namespaceBundleUnloadingTimeoutMs", 60, 60_000, {}),
        ("namespaceBundleUnloadingTimeoutMs", 1, 60_000, {}),
        ("statsUpdateFrequencyInSecs", 60_000, 60, {}),
        ("loadBalanceSheddingDelayInSeconds", 180_000, 180, EXTENSIBLE),
        ("loadBalancerBrokerLoadDataTTLInSeconds", 1_800_000, 1800, EXTENSIBLE),
        ("loadBalancerBundleUnloadMinThroughputThreshold", 10_485_760, 10, {}),
        ("loadBalancerBundleUnloadMinThroughputThreshold", 10_240, 10, {}),
        ("minUnloadMessageThroughput", 10, 10 * 2**20, UNIFORM),
        ("loadBalancerMsgRateDifferenceShedderThreshold", 0.5, 50, UNIFORM),
        ("loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold", 400, 4, UNIFORM),
        ("dispatchThrottlingRatePerTopicInByte", 20, 20 * 2**20, {}),
        ("dispatcherMaxReadSizeBytes", 5, 5 * 2**20, {}),
    ],
)
def test_a_value_in_a_wrong_unit_is_named_with_the_one_that_was_meant(
    name: str, value: float, meant: float, others: dict[str, object]
) -> None:
    (found,) = wrong_unit(Settings({**others, name: value}))
    assert found.changes == {name: meant}
    assert f"{value:,}" in found.title


@pytest.mark.parametrize(
    ("name", "value", "others"),
    [
        *((NIC, value, {}) for value in (0, 0.1, 1, 10, 25, 100, 400, 800)),
        *((SHEDDING, value, {}) for value in (1, 5, 30, 60, 360, 720, 1440, 2880, 10_080)),
        ("loadBalancerSheddingGracePeriodMinutes", 0, {}),
        ("loadBalancerSheddingGracePeriodMinutes", 120, {}),
        ("loadBalancerReportUpdateMaxIntervalMinutes", 60, {}),
        ("loadBalancerReportUpdateMinIntervalMillis", 500, {}),
        ("loadBalancerHostUsageCheckIntervalMinutes", 5, {}),
        ("namespaceBundleUnloadingTimeoutMs", 5000, {}),
        ("statsUpdateFrequencyInSecs", 1, {}),
        ("minUnloadMessageThroughput", 0, UNIFORM),
        ("minUnloadMessageThroughput", 1, UNIFORM),
        ("minUnloadMessageThroughput", 10, {}),  # nothing that runs reads it
        ("loadBalancerBundleUnloadMinThroughputThreshold", 0.5, {}),
        ("loadBalancerBundleUnloadMinThroughputThreshold", 500, {}),
        ("loadBalancerMsgRateDifferenceShedderThreshold", 0, UNIFORM),
        ("loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold", 1.2, UNIFORM),
        ("dispatchThrottlingRatePerTopicInByte", -1, {}),
        ("dispatcherMaxReadSizeBytes", 65_536, {}),
    ],
)
def test_a_sensible_value_is_not_doubted(name: str, value: float, others: dict[str, object]) -> None:
    assert not list(wrong_unit(Settings({**others, name: value})))


@pytest.mark.parametrize("name", RELEASES)
def test_no_default_is_doubted_and_every_unit_that_has_another_is_known(name: str) -> None:
    named = release(name)
    for others in ({}, UNIFORM, OVERLOAD):
        assert not list(wrong_unit(Settings(others, named)))
    for setting in named.settings.values():
        assert (setting.unit in ANOTHER_UNIT) <= (setting.name in SENSIBLE), setting.name


def test_a_limit_of_bundles_in_bytes_is_named_with_what_was_meant() -> None:
    """To switch the limit off was the remedy."""
    (found,) = limit_overflows(Settings({"loadBalancerNamespaceBundleMaxBandwidthMbytes": 104_857_600}))
    assert found.changes == {"loadBalancerNamespaceBundleMaxBandwidthMbytes": 100}


def test_what_no_simulation_shows_is_not_tried_on_a_cluster() -> None:
    made = cluster((0.6, 0.5, 0.55), settings={NIC: 1000})
    (found,) = (one for one in diagnose(simulate(made, unchanged("4.2.4"))) if one.code == "value_in_wrong_unit")
    assert not found.changes
    assert "1,000 Gbit/s" in found.title
