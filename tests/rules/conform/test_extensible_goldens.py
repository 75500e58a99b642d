"""Recorded cases of the extensible load manager that the schema of vectors cannot tell, and what all of them cover."""

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.errors import PulsarError, VectorError
from planner.cluster.pulsar_json import Json
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.conform import extensible
from planner.conform.compare import differences
from planner.conform.extensible import placement_answer
from planner.conform.kinds import KINDS
from planner.pulsar.shedding.transfer import TransferShedder

GOLDENS = Path(__file__).parent.parent.parent / "goldens"


def recorded(name: str) -> list[Any]:
    path = GOLDENS / f"{name}.jsonl.gz"
    vectors = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return [pytest.param(vector, id=vector["id"]) for vector in vectors]


def without_expected(vector: Json) -> Json:
    return {key: value for key, value in vector.items() if key != "expected"}


@pytest.mark.parametrize("vector", recorded("transfer_shedder/policies"))
def test_sheds_under_policies_as_recorded(vector: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    given = vector["input"]
    keeps, fails = given.get("filterKeeps", {}), given.get("filterFails", ())
    gated = Policies(
        isolation=tuple(IsolationPolicy("p", (re.escape(name),), ("x",)) for name in given.get("isolated", ())),
        anti_affinity_group=dict.fromkeys(given.get("antiAffinity", ()), "group"),
    )

    def filters(snapshot: Snapshot, config: Settings) -> Callable[[str], frozenset[str]]:
        del config

        def allowed(namespace: str) -> frozenset[str]:
            if namespace in fails:
                raise PulsarError("BrokerFilterException", "The filter failed.")
            brokers = snapshot.brokers
            registered = {name for name, here in zip(brokers.name, brokers.registered.tolist(), strict=True) if here}
            return frozenset(registered & set(keeps.get(namespace, registered)))

        return allowed

    plain = extensible._transfer_snapshot

    def with_policies(*args: Any) -> Snapshot:
        return replace(plain(*args), policies=gated)

    monkeypatch.setattr(extensible, "SHEDDER", TransferShedder(filters))
    monkeypatch.setattr(extensible, "_transfer_snapshot", with_policies)
    assert not list(differences(vector["expected"], KINDS[vector["kind"]].answer(without_expected(vector))))


def test_goldens_cover_every_outcome() -> None:
    """A golden set that never skips, swaps or fails would prove little."""
    skipped, reasons, splits = set(), set(), set()
    for name in ("vectors", "policies"):
        for parameters in recorded(f"transfer_shedder/{name}"):
            for step in parameters.values[0]["expected"]["steps"]:
                skipped |= set(step["counters"])
                reasons |= {decision["reason"] for decision in step["decisions"]}
    for name in ("vectors", "edges"):
        for parameters in recorded(f"auto_split_extensible/{name}"):
            for step in parameters.values[0]["expected"]["steps"]:
                splits |= {decision["reason"] for decision in step["decisions"]}
    kinds = {"HitCount", "NoBundles", "NoLoadData", "CoolDown", "OutDatedData", "NoBrokers"}
    assert skipped == {f"Skip.{kind}" for kind in kinds}
    assert reasons == {"Overloaded", "Underloaded"}
    assert splits == {"Topics", "Sessions", "MsgRate", "Bandwidth"}


def test_foreign_placement_strategy_is_refused() -> None:
    with pytest.raises(VectorError, match="AvgShedder") as caught:
        placement_answer({"id": "v1", "config": {}, "input": {"strategy": "AvgShedder", "steps": []}})
    assert "RoundRobinBrokerSelectionStrategy" in caught.value.remedy
