"""Real clusters for the tests. One runs at a time; each starts with the first test that wants it."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import pytest

from tests.cluster.launch import classpath
from tests.cluster.scene import Scene, SecureScene, modular_scene, secure_scene, shedding_scene

S = TypeVar("S")
LOADBALANCE = "org.apache.pulsar.broker.loadbalance"
AVG_SHEDDER = {
    "loadBalancerLoadSheddingStrategy": f"{LOADBALANCE}.impl.AvgShedder",
    "loadBalancerLoadPlacementStrategy": f"{LOADBALANCE}.impl.AvgShedder",
}
EXTENSIBLE = {
    "loadManagerClassName": f"{LOADBALANCE}.extensions.ExtensibleLoadManagerImpl",
    "loadBalancerLoadSheddingStrategy": f"{LOADBALANCE}.extensions.scheduler.TransferShedder",
}
OLDER = "4.0.8"
UNIFORM_SHEDDER = {
    "loadBalancerLoadSheddingStrategy": f"{LOADBALANCE}.impl.UniformLoadShedder",
    "minUnloadMessage": 10,
    "maxUnloadBundleNumPerShedding": 3,
    "loadBalancerDistributeBundlesEvenlyEnabled": "false",
}
QUICK_MS = 30_000
"""From one cycle to the next, where a test waits for one: half of the least that the settings allow."""


class Stage:
    """Runs the cluster that is asked for, and ends the one before."""

    def __init__(self, paths: str, folder: Path) -> None:
        self.paths = paths
        self.folder = folder
        self.running = contextlib.ExitStack()
        self.name = ""
        self.shown: object = None

    def show(self, name: str, build: Callable[[contextlib.ExitStack, str, Path], S]) -> S:
        if self.name != name:
            self.running.close()
            self.name, self.shown = name, None
            try:
                self.shown = build(self.running, self.paths, self.folder / name)
            except BaseException:
                self.running.close()
                raise
        if self.shown is None:
            pytest.fail(f"The cluster {name} did not start; see the first test that wanted it.")
        return cast("S", self.shown)


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("pulsar")
    shown = Stage(classpath(folder), folder)
    with shown.running:
        yield shown


@pytest.fixture
def modular(stage: Stage) -> Scene:
    """Three brokers with the modular load manager, and traffic on them."""
    return stage.show("modular", partial(modular_scene, interval_ms=QUICK_MS))


@pytest.fixture
def avg_shedder(stage: Stage) -> Scene:
    """Three brokers with the modular load manager and AvgShedder as both strategies."""
    return stage.show("avg_shedder", partial(shedding_scene, settings=AVG_SHEDDER, interval_ms=QUICK_MS))


@pytest.fixture
def older(stage: Stage) -> Scene:
    """Three brokers of `OLDER` with the modular load manager and UniformLoadShedder."""

    def build(running: contextlib.ExitStack, _: str, folder: Path) -> Scene:
        paths = classpath(stage.folder, release=OLDER)
        return shedding_scene(running, paths, folder, UNIFORM_SHEDDER, interval_ms=QUICK_MS)

    return stage.show(OLDER, build)


@pytest.fixture
def older_extensible(stage: Stage) -> Scene:
    """Three brokers of `OLDER` with the extensible load manager."""

    def build(running: contextlib.ExitStack, _: str, folder: Path) -> Scene:
        return shedding_scene(running, classpath(stage.folder, release=OLDER), folder, EXTENSIBLE)

    return stage.show(f"extensible {OLDER}", build)


@pytest.fixture
def extensible(stage: Stage) -> Scene:
    """Three brokers with the extensible load manager."""
    return stage.show("extensible", partial(shedding_scene, settings=EXTENSIBLE, interval_ms=QUICK_MS))


@pytest.fixture
def secure(stage: Stage) -> SecureScene:
    """One broker behind TLS and authentication."""
    return stage.show("secure", secure_scene)
