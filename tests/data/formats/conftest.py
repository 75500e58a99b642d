"""Small clusters, and the recorded captures, for the tests of the formats."""

import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.cluster.snapshot import Snapshot
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate

GOLDENS = Path(__file__).parent.parent.parent / "goldens" / "captures"


@pytest.fixture
def cluster() -> Snapshot:
    """Three brokers, two namespaces, eight bundles, thirty topics."""
    return generate(ClusterSpec(brokers=3, namespaces=2, bundles=8, topics=30), 7)


@pytest.fixture
def changed() -> Callable[..., Snapshot]:
    """Return a copy with one cell, or whole columns, of a table changed."""

    def change(snapshot: Snapshot, part: str, row: int | None = None, **columns: Any) -> Snapshot:
        table = getattr(snapshot, part)
        made: dict[str, Any] = {}
        for name, value in columns.items():
            old = getattr(table, name)
            if row is None:
                made[name] = value
            elif isinstance(old, tuple):
                made[name] = (*old[:row], value, *old[row + 1 :])
            else:
                new = np.array(old)
                new[row] = value
                made[name] = new
        return replace(snapshot, **{part: replace(table, **made)})

    return change


@pytest.fixture
def capture() -> Callable[[str], dict[str, bytes]]:
    """Return the files of a recorded capture."""

    def read(name: str) -> dict[str, bytes]:
        with zipfile.ZipFile(GOLDENS / f"{name}.zip") as archive:
            return {info.filename: archive.read(info) for info in archive.infolist()}

    return read
