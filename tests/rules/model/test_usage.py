"""Resource usages, single precision included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.tables import BrokerTable, make_brokers
from planner.pulsar.load.usage import (
    RESOURCES,
    ResourceWeights,
    deciding_resource,
    max_usage,
    percent_usage,
    usage_percent_by_resource,
    weighted_usage,
)

BOTH = (LoadManager.MODULAR, LoadManager.EXTENSIBLE)


def broker(**usage_percent: float) -> BrokerTable:
    columns = {f"{name}_usage_{unit}": value for name, unit in UNITS.items() if (value := usage_percent.get(name))}
    limits = {f"{name}_limit_{unit}": 100.0 for name, unit in UNITS.items()}
    return make_brokers(["b"], **columns, **limits)


UNITS = {
    "cpu": "percent",
    "memory": "mib",
    "direct_memory": "mib",
    "bandwidth_in": "kbit_per_s",
    "bandwidth_out": "kbit_per_s",
}


class TestPercent:
    @pytest.mark.parametrize(
        ("usage", "limit", "percent"),
        [
            (15.0, 100.0, 15.000000953674316),
            (30.0, 100.0, 30.000001907348633),
            (33.3, 77.7, 42.85714340209961),
            (150.0, 100.0, 150.0),
            (5.0, 0.0, 0.0),
            (5.0, -1.0, 0.0),
            (0.0, 100.0, 0.0),
        ],
    )
    def test_single_precision(self, usage: float, limit: float, percent: float) -> None:
        assert float(percent_usage(usage, limit)) == percent

    def test_nan_stays(self) -> None:
        assert np.isnan(percent_usage(np.nan, 100.0))
        assert percent_usage(np.nan, 0.0) == 0.0

    @given(st.floats(0, 1e9), st.floats(-10, 1e9))
    def test_as_java_computes(self, usage: float, limit: float) -> None:
        single = np.float32
        with np.errstate(all="ignore"):
            expected = single(usage) / single(limit) * single(100) if limit > 0 else single(0)
        assert percent_usage(usage, limit) == expected or np.isnan(expected)


class TestMax:
    def test_division_by_100_differs(self) -> None:
        assert max_usage(broker(cpu=85.0), LoadManager.MODULAR)[0] == 0.8500000238418579
        assert max_usage(broker(cpu=85.0), LoadManager.EXTENSIBLE)[0] == 0.85

    @pytest.mark.parametrize("load_manager", BOTH)
    def test_heap_memory_is_left_out_and_direct_memory_counts(self, load_manager: LoadManager) -> None:
        assert max_usage(broker(memory=90.0), load_manager)[0] == 0.0
        assert max_usage(broker(direct_memory=50.0), load_manager)[0] == 0.5

    def test_nan_is_skipped(self) -> None:
        assert max_usage(broker(cpu=float("nan"), bandwidth_in=50.0), LoadManager.EXTENSIBLE)[0] == 0.5


class TestWeighted:
    def test_weights_of_either_spelling(self) -> None:
        right, misspelt = "loadBalancerBandwidthInResourceWeight", "loadBalancerBandwithInResourceWeight"
        for config, weight in (
            ({}, 1.0),
            ({right: 0.5}, 0.5),
            ({misspelt: 0.3}, 0.3),
            ({right: 0.5, misspelt: 0.3}, 0.5),
            ({right: 1.0, misspelt: 0.0}, 0.0),
        ):
            assert ResourceWeights.of(Settings(config), LoadManager.MODULAR).bandwidth_in == weight

    def test_heap_memory_counts_in_the_extensible_manager_only(self) -> None:
        config = Settings({"loadBalancerMemoryResourceWeight": 1.0})
        assert weighted_usage(broker(memory=90.0), config, LoadManager.MODULAR)[0] == 0.0
        assert weighted_usage(broker(memory=50.0), config, LoadManager.EXTENSIBLE)[0] == 0.5

    def test_direct_memory_does_not_count_by_default(self) -> None:
        assert weighted_usage(broker(direct_memory=90.0, cpu=10.0), Settings(), LoadManager.MODULAR)[0] == 0.1

    @given(st.lists(st.floats(0, 1000), min_size=5, max_size=5), st.sampled_from(BOTH))
    def test_the_deciding_resource_gives_the_usage(self, percents: list[float], load_manager: LoadManager) -> None:
        brokers = broker(**dict(zip(UNITS, percents, strict=True)))
        config = Settings({"loadBalancerDirectMemoryResourceWeight": 0.5, "loadBalancerMemoryResourceWeight": 0.25})
        weights = dict(zip(RESOURCES, (1.0, 0.25, 0.5, 1.0, 1.0), strict=True))
        (name,) = deciding_resource(brokers, config, load_manager)
        each = dict(zip(RESOURCES, usage_percent_by_resource(brokers)[:, 0].astype(float).tolist(), strict=True))
        if load_manager is LoadManager.MODULAR:
            assert name != "memory"
            del each["memory"]
        usage = weighted_usage(brokers, config, load_manager)[0]
        assert usage == max(each[resource] * weights[resource] for resource in each) / 100
        assert usage == each[name] * weights[name] / 100

    def test_no_brokers(self) -> None:
        assert deciding_resource(make_brokers([]), Settings(), LoadManager.MODULAR) == ()
        assert weighted_usage(make_brokers([]), Settings(), LoadManager.MODULAR).shape == (0,)
