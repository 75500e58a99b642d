"""What the ten commands print of a recorded capture: its answers as `pulsar-admin` writes them, below each command."""

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

GOLDENS = Path(__file__).parents[2] / "goldens" / "captures"


def capture(name: str) -> dict[str, bytes]:
    """Return the files of a recorded capture."""
    with zipfile.ZipFile(GOLDENS / name) as archive:
        return {Path(member).name: archive.read(member) for member in archive.namelist() if not member.endswith("/")}


def _table(values: Mapping[str, Any]) -> str:
    return "".join(f"{name}    {value}\n" for name, value in values.items())


def _policy(policy: Mapping[str, Any]) -> str:
    lists = ", ".join(f"{name}=[{', '.join(policy[name])}]" for name in ("namespaces", "primary", "secondary"))
    parameters = ", ".join(f"{k}={v}" for k, v in policy["auto_failover_policy"]["parameters"].items())
    failover = f"AutoFailoverPolicyDataImpl(policyType=min_available, parameters={{{parameters}}})"
    return f"NamespaceIsolationDataImpl({lists}, autoFailoverPolicy={failover}, unloadScope=null)"


def _owned(bundles: Mapping[str, Any]) -> str:
    return "".join(
        f"{name}    [broker_assignment=primary is_controlled=true is_active=true]\n" for name in sorted(bundles)
    )


def _answer(files: Mapping[str, bytes], name: str) -> Any:
    return json.loads(files[name]) if files.get(name, b"").strip() else None


def _of_broker(files: Mapping[str, bytes], tag: str, broker: str) -> Iterator[tuple[str, str]]:
    report = _answer(files, f"load-report.{tag}.json")
    if report and "cpu" in report:
        yield f"curl -s http://{broker}/admin/v2/broker-stats/load-report", json.dumps(report)
    elif metrics := files.get(f"prometheus.{tag}.txt"):
        yield f"curl -s http://{broker}/metrics/", metrics.decode()
    if topics := _answer(files, f"topics.{tag}.json"):
        text = json.dumps(topics).replace("=", "\\u003d") + "\n"
        yield f"pulsar-admin --admin-url http://{broker} broker-stats topics", text
    if owned := _answer(files, f"owned.{tag}.json"):
        yield f"pulsar-admin brokers namespaces c --url {broker}", _owned(owned)


def _of_cluster(files: Mapping[str, bytes], asked: str) -> Iterator[tuple[str, str]]:
    if brokers := _answer(files, "brokers.json"):
        yield "pulsar-admin brokers list c", "".join(f"{name}\n" for name in brokers)
    if leader := _answer(files, "leader.json"):
        yield "pulsar-admin brokers leader-broker", json.dumps(leader, indent=2).replace('":', '" :') + "\n"
    if "version.txt" in files:
        yield "pulsar-admin brokers version", files["version.txt"].decode().strip().strip('"') + "\n"
    if runtime := next((_answer(files, n) for n in files if n.startswith("runtime-config.b")), None):
        yield f"pulsar-admin --admin-url http://{asked} brokers get-runtime-config", _table(runtime)
    yield "pulsar-admin brokers get-all-dynamic-config", _table(_answer(files, "dynamic-config-values.json") or {})
    isolation = _answer(files, "isolation-policies.json") or {}
    policies = {name: _policy(policy) for name, policy in isolation.items()}
    yield "pulsar-admin ns-isolation-policy list c", _table(policies)


def _outputs(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield each command with what it prints."""
    index = [line for line in json.loads(files["index.json"]) if line.get("status", 200) == 200]
    by_tag = {
        line["file"].split(".")[1]: urlsplit(line["asked"]).netloc
        for line in index
        if line["file"].startswith(("owned.b", "load-report.b", "topics.b"))
    }
    yield from _of_cluster(files, next(iter(by_tag.values()), ""))
    for tag, broker in sorted(by_tag.items()):
        yield from _of_broker(files, tag, broker)
    for line in index:
        parts = [unquote(part) for part in line["path"].split("/")]
        if parts[-1] == "bundles" and parts[3:4] == ["namespaces"]:
            bundles = json.dumps(_answer(files, line["file"]), indent=2) + "\n"
            yield f"pulsar-admin namespaces bundles {parts[4]}/{parts[5]}", bundles


def printed(files: Mapping[str, bytes]) -> str:
    """Return a terminal in which the ten commands were run."""
    return "".join(f"user@host:~$ {command}\n{text}\n" for command, text in _outputs(files))
