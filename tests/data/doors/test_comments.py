"""What a settings file has in its comments never decides what kind of file it is, or what its settings are.

The `broker.conf` that Pulsar ships was taken for a plan of Terraform, for *value will be* in a comment, and lost the
names of its classes.
"""

from pathlib import Path

import pytest

from planner.doors.read import read_outputs

INPUTS = sorted(path for path in (Path(__file__).parent / "inputs").rglob("*") if path.is_file())
SETTINGS = """loadManagerClassName=org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl
loadBalancerLoadSheddingStrategy=org.apache.pulsar.broker.loadbalance.impl.AvgShedder
supportedNamespaceBundleSplitAlgorithms=range_equally_divide,topic_count_equally_divide
loadBalancerHistoryResourcePercentage=0.8
loadBalancerEnabled=true
defaultNumberOfNamespaceBundles=16
"""
PROSE = [
    "value will be used as the default",
    "If it is empty, brokers must be restarted, or data will be lost.",
    "resource usage of a broker { in percent }",
    "Shedding is done by [ThresholdShedder] -> see loadBalancerSheddingEnabled=false",
    "e.g. pulsar-admin brokers update-dynamic-config --config loadBalancerEnabled --value false",
    "The unit is MiB: 100 means {100}",
]
RUN = "# docker run -e PULSAR_PREFIX_loadBalancerSheddingIntervalMinutes=5 apachepulsar/pulsar:4.2.4 bin/pulsar"
MOST_LINES = 200
"""Lines of an input at most: its first ones show what it is."""


def said(text: str, tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "broker.conf"
    path.write_text(text, encoding="utf-8")
    return {name: value for one in read_outputs(path).configurations for name, value in one.values.items()}


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
@pytest.mark.parametrize("sign", ["#", "# "])
def test_an_answer_in_comments_is_not_read(path: Path, sign: str, tmp_path: Path) -> None:
    lines = path.read_bytes()[:60_000].decode("utf-8", "replace").splitlines()[:MOST_LINES]
    comments = "# How it is now.\n" + "".join(f"{sign}{line}\n" for line in lines)
    assert said(f"{comments}\n{SETTINGS}", tmp_path) == said(SETTINGS, tmp_path)


@pytest.mark.parametrize("words", PROSE)
@pytest.mark.parametrize("sign", ["#", "# ", "  # ", "## "])
def test_prose_in_comments_is_not_read(words: str, sign: str, tmp_path: Path) -> None:
    assert said(f"{SETTINGS}\n{sign}{words}\n{SETTINGS}", tmp_path) == said(SETTINGS, tmp_path)


def test_a_command_of_root_is_no_comment(tmp_path: Path) -> None:
    """The prompt of root is a sign of comments, too."""
    commands = f"{RUN}\n# docker exec broker cat conf/broker.conf\n"
    assert said(f"{commands}{SETTINGS}", tmp_path)["loadBalancerSheddingIntervalMinutes"] == "5"


def test_a_command_that_prints_no_settings_is_a_comment_above_some(tmp_path: Path) -> None:
    """How a container is started was read as settings from the head of a file."""
    assert said(f"{RUN}\n{SETTINGS}", tmp_path) == said(SETTINGS, tmp_path)
