"""Values that brokers cannot read, and the number that each means."""

from pathlib import Path

import pytest

from planner.cluster.releases import REFERENCE
from planner.doors.lint import lint_file
from planner.doors.meant import number_meant

PERCENT = "loadBalancerBrokerOverloadedThresholdPercentage"
FRACTION = "loadBalancerHistoryResourcePercentage"
RATE = "loadBalancerNamespaceBundleMaxMsgRate"
MBYTES = "loadBalancerNamespaceBundleMaxBandwidthMbytes"
MINUTES = "loadBalancerSheddingGracePeriodMinutes"
BYTES = "minUnloadMessageThroughput"


@pytest.mark.parametrize(
    ("name", "written", "meant"),
    [
        (PERCENT, "70%", "70"),
        (PERCENT, '"70"', "70"),
        (PERCENT, "0.7", "70"),
        (PERCENT, "70.0", "70"),
        (PERCENT, "70 # was 85", "70"),
        (PERCENT, "70 // was 85", "70"),
        (PERCENT, "-1%", ""),
        (PERCENT, "${LIMIT}", ""),
        (FRACTION, "70%", "0.7"),
        (FRACTION, "0,7", "0.7"),
        (RATE, "50_000", "50000"),
        (RATE, "50,000", "50000"),
        (RATE, "50k", "50000"),
        (RATE, "50 apples", ""),
        (MBYTES, "200MB", "200"),
        (MBYTES, "1 GB", "1024"),
        (MBYTES, "200 Mbytes", "200"),
        (MINUTES, "30m", "30"),
        (MINUTES, "1h", "60"),
        (MINUTES, "20s", ""),
        (MINUTES, "30%", ""),
        (BYTES, "2MB", "2097152"),
        ("loadBalancerSheddingEnabled", "70%", ""),
        ("loadManagerClassName", "70%", ""),
    ],
)
def test_the_number_that_a_text_means(name: str, written: str, meant: str) -> None:
    assert number_meant(REFERENCE.settings[name], written) == meant


@pytest.mark.parametrize(("written", "better"), [("70%", "70"), ("70 # per cent", "70"), ("seventy", "85")])
def test_a_correction_keeps_the_number_that_was_written(written: str, better: str, tmp_path: Path) -> None:
    """The default was written over whatever the operator had chosen."""
    conf = tmp_path / "broker.conf"
    conf.write_text(f"{PERCENT}={written}\n")
    (finding,) = lint_file(conf, REFERENCE)
    assert finding.code == "invalid_value"
    assert finding.command[0].rstrip().endswith(f"={better}|' {conf}")
    assert (f"Write {better}." in finding.remedy) is (better == "70")
