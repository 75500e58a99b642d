"""The release that the images beside settings are of: taken where nothing else names one, and said."""

import io
import time
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.cluster.releases import REFERENCE
from planner.doors.images import release_of_images, releases_in
from planner.doors.lint import lint_file
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading

AVG = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
VALUES = f"""defaultPulsarImageTag: 3.1.2
broker:
  replicaCount: 3
  configData:
    PULSAR_MEM: >
      -Xms4g -Xmx4g
    loadBalancerLoadSheddingStrategy: "{AVG}"
    loadBalancerLoadPlacementStrategy: "{AVG}"
    loadBalancerAvgShedderLowThreshold: "20"
"""
COMPOSE = """services:
  zookeeper:
    image: apachepulsar/pulsar:3.0.0
    environment:
      - metadataStoreUrl=zk:zookeeper:2181
    command: >
      bash -c "bin/apply-config-from-env.py conf/zookeeper.conf && \\
             bin/generate-zookeeper-config.sh conf/zookeeper.conf && \\
             exec bin/pulsar zookeeper"
  broker-1:
    image: apachepulsar/pulsar:3.0.0
    environment:
      - loadBalancerSheddingIntervalMinutes=2
  broker-2:
    image: apachepulsar/pulsar:3.0.0
    environment:
      - loadBalancerSheddingIntervalMinutes=2
"""


def read(*texts: str, release: str = "") -> Reading:
    given = [Given(f"{at}.txt", io.BytesIO(text.encode())) for at, text in enumerate(texts)]
    return read_given(given, release=release, now_ms=1_700_000_000_000)


def report(version: str = "") -> str:
    bundle = "shop/orders/0x00000000_0xffffffff"
    usage = ", ".join(
        f'"{name}": {{"usage": 1.0, "limit": 100.0}}'
        for name in ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
    )
    named = f', "brokerVersionString": "{version}"' if version else ""
    rates = '"msgRateIn": 1.0, "msgThroughputIn": 1.0, "msgRateOut": 1.0, "msgThroughputOut": 1.0'
    stats = f'{{{rates}, "consumerCount": 1, "producerCount": 1, "topics": 1, "cacheSize": 0}}'
    return (
        f'{{"webServiceUrl": "http://b-1:8080", "pulsarServiceUrl": "pulsar://b-1:6650", {usage}, {rates}, '
        f'"lastUpdate": 1700000000000, "lastStats": {{"{bundle}": {stats}}}, "bundles": ["{bundle}"], '
        f'"numTopics": 1, "numBundles": 1, "numConsumers": 1, "numProducers": 1{named}}}\n'
    )


@pytest.mark.parametrize(
    ("text", "releases"),
    [
        ("image: apachepulsar/pulsar:2.10.4", ["2.10.4"]),
        ('  image: "registry.example.com:5000/apachepulsar/pulsar-all:v3.0.7"', ["3.0.7"]),
        ("image: streamnative/pulsar:2.9.2.17", ["2.9.2"]),
        ("image: datastax/lunastreaming:2.10_3.4", ["2.10"]),
        ("image: apachepulsar/pulsar:${PULSAR_VERSION:-3.1.2}", ["3.1.2"]),
        ("FROM apachepulsar/pulsar-all:4.0.8\nENV X=1", ["4.0.8"]),
        ("docker run -e A=b apachepulsar/pulsar:2.11.0 bin/pulsar standalone", ["2.11.0"]),
        ('"Image": "apachepulsar/pulsar:3.0.1"', ["3.0.1"]),
        ("image: apachepulsar/pulsar:5.0.0-M1@sha256:0123", ["5.0.0-M1"]),
        ("repository: apachepulsar/pulsar-all\n    # the tag\n    tag: 2.9.2\n", ["2.9.2"]),
        ("tag: 2.9.2\n    repository: apachepulsar/pulsar-all\n", ["2.9.2"]),
        ("broker:\n    tag: 2.9.2\n", ["2.9.2"]),
        ("--set images.broker.tag=3.0.3", ["3.0.3"]),
        ("defaultPulsarImageTag: 3.0.7", ["3.0.7"]),
        ("image: apachepulsar/pulsar:3.0.1\nimage: apachepulsar/pulsar:3.0.2", ["3.0.1", "3.0.2"]),
        ("image: apachepulsar/pulsar:latest", []),
        ("image: apachepulsar/pulsar-manager:v2.3.0", []),
        ("repository: apachepulsar/pulsar-manager\n  tag: 2.3.0\n", []),
        ("# image: apachepulsar/pulsar:2.9.0", []),
        ("serviceUrl: pulsar://pulsar:6650", []),
        ("image: zookeeper:3.8.1", []),
    ],
)
def test_the_release_of_an_image(text: str, releases: list[str]) -> None:
    assert list(releases_in(memoryview(text.encode()))) == releases


def test_a_file_is_checked_for_the_release_of_its_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was checked for the newest release, which has what its brokers do not."""
    path = tmp_path / "values.yaml"
    path.write_text(VALUES, encoding="utf-8")
    codes = {one.code: one for one in lint_file(path)}
    assert codes["setting_of_another_release"].settings == ("loadBalancerAvgShedderLowThreshold",)
    assert codes["setting_of_another_release"].line == 9
    assert main(["lint", str(path)]) == 1
    shown = capsys.readouterr()
    assert f"note: {path} has images of Pulsar 3.1.2, so that release counts.\n" == shown.err
    assert "Pulsar 3.1.2 does not have loadBalancerAvgShedderLowThreshold" in shown.out
    assert main(["lint", str(path), "--release", "4.2.4"]) == 0
    assert not capsys.readouterr().err


def test_a_release_without_rules_of_its_own_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "values.yaml"
    path.write_text(VALUES.replace("3.1.2", "2.9.2"), encoding="utf-8")
    main(["lint", str(path)])
    assert "note: For Pulsar 2.9.2, the rules and defaults are those of 3.0.0" in capsys.readouterr().err


def test_a_snapshot_has_the_release_of_the_images_where_no_broker_names_one() -> None:
    reading = read(report(), VALUES)
    assert reading.snapshot is not None
    assert reading.snapshot.info.pulsar_version == "3.1.2"
    assert reading.snapshot.settings.release.name == "3.1.2"
    assert "1.txt has images of Pulsar 3.1.2; the brokers are assumed to run it." in reading.assumed
    assert "release" not in {one.kind for one in reading.missing}


def test_what_the_brokers_say_counts_above_their_images() -> None:
    reading = read(report("3.0.7"), VALUES)
    assert reading.snapshot is not None
    assert reading.snapshot.info.pulsar_version == "3.0.7"
    assert "1.txt has images of Pulsar 3.1.2, but the brokers run 3.0.7, which counts." in reading.contradictions
    agreeing = read(report("3.1.2-SNAPSHOT"), VALUES)
    assert not [text for text in agreeing.contradictions if "images" in text]


def test_images_of_several_releases_name_none_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    several = COMPOSE.replace("3.0.0", "3.1.2", 1)
    reading = read(several)
    assert release_of_images(reading.configurations) == ("", "")
    assert release_of_images(read(COMPOSE).configurations) == ("3.0.0", "0.txt")
    said = "has images of several releases of Pulsar (3.1.2, 3.0.0), so that none counts."
    checked = f"It is checked for Pulsar {REFERENCE.name}; --release checks it for another one."
    assert f"0.txt {said} Add the answer to brokers version, or use --release." in reading.assumed
    assert not read(COMPOSE).assumed
    assert not [text for text in read(report("3.0.7"), several).assumed if said in text]
    path = tmp_path / "compose.yaml"
    path.write_text(several, encoding="utf-8")
    main(["lint", str(path)])
    assert capsys.readouterr().err == f"note: {path} {said} {checked}\n"


def test_a_release_that_a_person_gives_is_the_one_in_every_sentence() -> None:
    """The report assumed the newest release, and asked for the release, while the snapshot had the given one."""
    reading = read(report(), release="3.0.7")
    assert reading.snapshot is not None
    assert reading.snapshot.info.pulsar_version == "3.0.7"
    assert "release" not in {one.kind for one in reading.missing}
    [defaults] = [one.assumed for one in reading.missing if one.what == "the settings of the brokers"]
    assert defaults == "The defaults of Pulsar 3.0.7 are assumed."
    other = read(report("2.8.1"), release="3.0.7")
    assert "Load reports name Pulsar 2.8.1, but the release is given as 3.0.7, which counts." in other.contradictions


def test_a_file_of_compose_is_read_as_it_is(tmp_path: Path) -> None:
    """A command that goes on behind a backslash was joined with the next service."""
    reading = read(COMPOSE)
    assert not reading.assumed
    assert not reading.not_used
    path = tmp_path / "compose.yaml"
    path.write_text(COMPOSE, encoding="utf-8")
    assert lint_file(path) == ()


def test_images_are_looked_for_in_time_in_any_text() -> None:
    begun = time.process_time()
    for start in ("broker", "repository", "tag", "tag: 2.9.2", "broker:\n"):
        assert releases_in(memoryview((start + " " * 300_000 + "x").encode())) == ()
    assert time.process_time() - begun < 5
