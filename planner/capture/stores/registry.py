"""The metadata stores that can be read: one line for each."""

from planner.capture.options import CaptureOptions
from planner.capture.stores import etcd, zookeeper
from planner.capture.stores.protocol import MetadataStore, StoreKind
from planner.cluster.errors import CaptureError

STORES: tuple[StoreKind, ...] = (zookeeper.STORE, etcd.STORE)
"""All kinds of stores."""

EXAMPLE = " or ".join(store.example for store in STORES)
"""Example of an address."""

SCHEMES = "|".join(f"{store.scheme}:" for store in STORES)
"""Regular expression of how addresses begin."""


def is_store_address(text: str) -> bool:
    """Whether a text is the address of a metadata store."""
    return any(store.address.fullmatch(text) for store in STORES)


def kind_of(address: str) -> StoreKind:
    """Return the kind of store that an address names.

    Raises:
        CaptureError: There is no such kind, or the address is none of it.
    """
    for store in STORES:
        if address.startswith(f"{store.scheme}:"):
            if store.address.fullmatch(address):
                return store
            raise CaptureError(
                f"This is not an address of {store.name}.", where="--metadata-store", remedy=f"Write {store.example}."
            )
    raise CaptureError(
        f"Only {' and '.join(store.name for store in STORES)} can be captured.",
        where="--metadata-store",
        remedy=f"Write {EXAMPLE}, or leave it out; averages are then estimated.",
    )


def connect(options: CaptureOptions) -> MetadataStore | None:
    """Connect to the metadata store of a cluster; None when it may not be asked.

    Raises:
        CaptureError: The address is none, or nobody answers there.
    """
    return kind_of(options.metadata_store).open(options) if options.metadata_store else None
