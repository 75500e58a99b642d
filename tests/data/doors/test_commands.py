"""The commands that the page prints: at most ten of each load manager, and those that the next cycle is proven with."""

import io
import json
import re
import shlex
from pathlib import Path

import pytest

from planner.cluster.load_manager import LoadManager
from planner.doors.commands import script
from planner.doors.read import Given, read_given
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from tests.data.doors.printed import GOLDENS, capture, printed

INPUTS = Path(__file__).parent / "inputs"
CAPTURES = sorted(path.name for path in GOLDENS.glob("*.zip"))


def forms(text: str, names: dict[str, str]) -> set[str]:
    """Return commands without the names in them."""
    found = set()
    for line in text.splitlines():
        command = line.partition("    #")[0]
        for name in sorted(names, key=len, reverse=True):
            command = command.replace(name, names[name])
        found.add(command)
    return found


@pytest.mark.parametrize("load_manager", [*LoadManager, None])
def test_there_are_ten_of_each_load_manager(load_manager: LoadManager | None) -> None:
    names = {"b-0:8080": "B", "b-1:8080": "B", "shop/orders": "N", "shop/carts": "N"}
    text = script("east", ["b-0:8080", "b-1:8080"], ["shop/orders", "shop/carts"], load_manager)
    assert len(forms(text, names)) == 10
    load = "/metrics/" if load_manager is LoadManager.EXTENSIBLE else "/broker-stats/load-report"
    assert [load in line for line in text.splitlines()].count(True) == 2
    assert all(shlex.split(line, comments=True)[0] in ("curl", "pulsar-admin") for line in text.splitlines())


@pytest.mark.parametrize("load_manager", [*LoadManager, None])
@pytest.mark.parametrize(("port", "scheme"), [("8080", "http"), ("8443", "https"), ("443", "https"), ("18443", "http")])
def test_brokers_with_a_port_of_tls_are_asked_there(load_manager: LoadManager | None, port: str, scheme: str) -> None:
    text = script("east", [f"b-0:{port}"], ["shop/orders"], load_manager)
    assert set(re.findall(r"(\w+)://", text)) == {scheme}
    assert f"brokers namespaces east --url b-0:{port}" in text


def test_what_is_missing_of_a_broker_with_tls_alone_is_asked_there() -> None:
    """A broker whose report has no plain address was to be asked by plain HTTP, which it does not speak."""
    report = json.loads((INPUTS / "load_report" / "pretty_4_0.json").read_text())
    report |= {"webServiceUrl": None, "webServiceUrlTls": "https://Mq-0.Corp.example:8443"}
    reading = read_given([Given("report.json", io.BytesIO(json.dumps(report).encode()))])
    asked = [one.command for one in reading.missing if "://" in one.command]
    assert len(asked) == 2
    assert all("https://Mq-0.Corp.example:8443" in command for command in asked)


@pytest.mark.parametrize("name", CAPTURES)
def test_the_proof_uses_what_the_page_prints(name: str) -> None:
    """The page printed a load report for brokers of the extensible load manager, which have none."""
    files = capture(name)
    snapshot = snapshot_of_capture(files)
    names = dict.fromkeys(snapshot.brokers.name, "B") | dict.fromkeys(snapshot.namespaces, "N")
    asked = [line.get("asked", "").partition("://")[2] for line in json.loads(files["index.json"])]
    names |= dict.fromkeys(filter(None, asked), "B")
    shown = forms(script("c", snapshot.brokers.name, snapshot.namespaces, snapshot.info.load_manager), names)
    ran = {line.partition("$ ")[2] for line in printed(files).splitlines() if line.startswith("user@host:~$ ")}
    assert forms("\n".join(ran), names) <= shown
