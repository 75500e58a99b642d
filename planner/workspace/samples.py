"""The samples that come with the product: small clusters that each show something."""

import json
from dataclasses import dataclass
from functools import cache

from planner.cluster.errors import StoreError
from planner.cluster.resources import resources
from planner.cluster.snapshot import Snapshot
from planner.formats.reading import read_snapshot

FOLDER = resources() / "sample_snapshots"
"""Where the samples are."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample.

    Attributes:
        file: Name of the file in the folder.
        title: What to call it.
        group: What it belongs to, for the gallery.
        shows: What there is to see, one or two sentences.
        provenance: Where its numbers come from.
        digest: Digest of its content.
    """

    file: str
    title: str
    group: str
    shows: str
    provenance: str
    digest: str


@cache
def samples() -> tuple[Sample, ...]:
    """Return every sample, the one to start with first; none when the folder is missing."""
    index = FOLDER / "index.json"
    if not index.is_file():
        return ()
    return tuple(Sample(**entry) for entry in json.loads(index.read_text(encoding="utf-8")))


def sample_by_digest(digest_prefix: str) -> Sample | None:
    """Return the sample whose digest starts so, if it is the only one."""
    found = [s for s in samples() if digest_prefix and s.digest.startswith(digest_prefix.lower())]
    return found[0] if len(found) == 1 else None


def load_sample(sample: Sample) -> Snapshot:
    """Read a sample.

    Raises:
        StoreError: Its file is missing.
        FormatError: Its file is damaged.
    """
    path = FOLDER / sample.file
    if not path.is_file():
        raise StoreError("The file of the sample is missing.", where=sample.file, remedy="Install the planner again.")
    return read_snapshot(path)
