"""A capture through one address that hides the brokers never takes the answers of one for those of another."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from planner.capture.options import CaptureOptions
from planner.capture.run import capture_cluster
from planner.cluster.errors import CaptureError
from tests.data.capture.test_capture_cluster import owners
from tests.data.recorded_cluster import RECORDED, Cluster, Handler, ZooKeeper

Options = Callable[..., CaptureOptions]


def hide(cluster: Cluster, zookeeper: ZooKeeper | None = None) -> dict[str, str]:
    """Give the brokers ids that lead nowhere, as those of pods do outside; return them by what they were."""
    pods = {real: f"broker-{at}.pulsar.invalid:8080" for at, real in enumerate(cluster.ids.values())}

    def renamed(text: str) -> str:
        for real, pod in pods.items():
            text = text.replace(real, pod)
        return text

    cluster.answers = {
        (broker, renamed(path)): (status, renamed(body.decode()).encode(), kind)
        for (broker, path), (status, body, kind) in cluster.answers.items()
    }
    if zookeeper is not None:
        zookeeper.nodes = {renamed(path): renamed(data.decode()).encode() for path, data in zookeeper.nodes.items()}
        for names in zookeeper.children.values():
            for name in list(names):
                names.remove(name)
                names.add(renamed(name))
        zookeeper.children = {renamed(path): names for path, names in zookeeper.children.items()}
    return pods


def test_with_a_metadata_store_all_comes_from_there(cluster: Cluster, zookeeper: ZooKeeper, options: Options) -> None:
    direct = capture_cluster(options(cluster, metadata_store=zookeeper.address)).snapshot
    pods = hide(cluster, zookeeper)
    asked = len(cluster.asked)
    result = capture_cluster(options(cluster, metadata_store=zookeeper.address, out=options(cluster).out / "hidden"))
    found = result.snapshot
    assert found.brokers.name == tuple(pods[name] for name in direct.brokers.name)
    assert found.brokers.has_load_data.all()
    assert np.array_equal(found.brokers.cpu_usage_percent, direct.brokers.cpu_usage_percent)
    assert found.bundles.owner.tolist() == direct.bundles.owner.tolist()
    assert found.settings == direct.settings
    assert not found.topics.has_stats.any()
    said = " ".join(found.info.warnings)
    assert f"No broker can be reached under its id, so {cluster.url} alone was asked" in said
    assert "--broker-at" in said
    assert not [path for _, _, path, _ in cluster.asked[asked:] if "broker-stats" in path]


def test_without_one_the_options_are_named(cluster: Cluster, options: Options) -> None:
    hide(cluster)
    with pytest.raises(CaptureError, match=r"under their ids.*--broker-at.*--metadata-store"):
        capture_cluster(options(cluster))


def test_who_does_not_answer_is_asked_no_more(cluster: Cluster, options: Options) -> None:
    listed = [*cluster.ids.values(), "broker-9.pulsar.invalid:8080"]
    cluster.answers["", "/admin/v2/brokers"] = (200, json.dumps(listed).encode(), "application/json")
    result = capture_cluster(options(cluster))
    assert len([part for part in result.parts if ".invalid" in part.asked]) == 1
    assert f"Broker {listed[-1]} did not answer" in " ".join(result.snapshot.info.warnings)


def test_one_address_for_two_brokers_is_refused(cluster: Cluster, options: Options) -> None:
    pods = list(hide(cluster).values())
    at = tuple(f"{pod}={cluster.url}" for pod in pods[:2])
    with pytest.raises(CaptureError, match=f"is the address of both .*{pods[0]}"):
        capture_cluster(options(cluster, broker_at=at))


def test_one_address_for_all_brokers_of_a_host_is_refused(cluster: Cluster, options: Options) -> None:
    with pytest.raises(CaptureError, match="cannot be told apart"):
        capture_cluster(options(cluster, broker_url="http://{host}:8080"))


@pytest.mark.parametrize("hidden", [True, False])
def test_addresses_in_the_wrong_order(cluster: Cluster, options: Options, *, hidden: bool) -> None:
    """Two forwarded ports that were mixed up: each report says whose it is, and owners tell whose the topics are."""
    direct = capture_cluster(options(cluster)).snapshot
    pods = hide(cluster) if hidden else {name: name for name in cluster.ids.values()}
    real = list(pods)
    wrong = [real[1], real[0], real[2]]
    at = tuple(f"{pods[name]}=http://{there}" for name, there in zip(real, wrong, strict=True))

    def redirect(owner: str) -> Callable[[Handler], None]:
        pod = pods[cluster.ids[owner]]
        return lambda handler: handler.give(307, b"", Location=f"http://{pod}{handler.path}")

    for server in RECORDED:
        for owner in RECORDED:
            if server != owner:
                path = f"/admin/v2/brokers/planner/{pods[cluster.ids[owner]]}/ownedNamespaces"
                cluster.special[server, path] = redirect(owner)
    found = capture_cluster(options(cluster, broker_at=at, out=options(cluster).out / "wrong")).snapshot
    assert found.brokers.has_load_data.all()
    assert np.array_equal(found.brokers.cpu_usage_percent, direct.brokers.cpu_usage_percent)
    was = {name: pods[owner] for name, owner in owners(direct).items() if owner and not name.startswith("pulsar/")}
    assert was.items() <= owners(found).items()
    said = " ".join(found.info.warnings)
    assert said.count("another broker answered") >= 2


def test_with_the_extensible_load_manager_the_command_for_loads_is_named(
    cluster: Cluster, zookeeper: ZooKeeper, options: Options
) -> None:
    modular, extensible = b"impl.ModularLoadManagerImpl", b"extensions.ExtensibleLoadManagerImpl"
    cluster.answers = {
        key: (status, body.replace(modular, extensible), kind) for key, (status, body, kind) in cluster.answers.items()
    }
    hide(cluster, zookeeper)
    found = capture_cluster(options(cluster, metadata_store=zookeeper.address)).snapshot
    [said] = [text for text in found.info.warnings if "loads are in a system topic alone" in text]
    assert "pulsar-client consume" in said
    assert "python -m planner snapshot" in said
