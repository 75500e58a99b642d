"""What a namespace says: the boundaries of its bundles, its policies, its anti-affinity group."""

from collections.abc import Iterator
from typing import Final

from planner.cluster.errors import FormatError
from planner.doors.boundaries import boundaries_in
from planner.doors.chunks import Chunk
from planner.doors.kind import LIKELY, NO, SURE, Kind
from planner.doors.kinds.limits import DEFAULT_RATE, check_rate
from planner.doors.pieces import AntiAffinityGroup, NamespaceBundles, NamespacePolicies, NotUsed, Piece

_OF_POLICIES: Final = frozenset(
    ["auth_policies", "replication_clusters", "topicDispatchRate", "subscriptionDispatchRate", "backlog_quota_map"]
)
_LIMITS: Final = ("topicDispatchRate", "clusterDispatchRate", "subscriptionDispatchRate", "replicatorDispatchRate")
_SHOWN: Final = 80
_GROUP_COMMAND: Final = "get-anti-affinity-group"


def _recognise_bundles(chunk: Chunk) -> int:
    keys = chunk.keys.keys()
    return SURE if "boundaries" in keys and keys <= {"boundaries", "numBundles"} else NO


def _read_bundles(chunk: Chunk) -> Iterator[NamespaceBundles]:
    value = chunk.value
    _check_bundles(value, str(chunk.source))
    yield NamespaceBundles(source=chunk.source, bundles=value, namespace=chunk.namespace)


def _check_bundles(value: object, where: str) -> None:
    texts = value.get("boundaries") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise FormatError("The boundaries are not a list of texts.", where=where, remedy="Save the answer unchanged.")
    if not boundaries_in(value):
        what = "The boundaries do not ascend from 0x00000000 to 0xffffffff."
        raise FormatError(what, where=where, remedy="Save the answer unchanged.")
    count = value.get("numBundles", len(texts) - 1)
    if str(count) != str(len(texts) - 1):
        raise FormatError(
            f"The answer says numBundles {str(count)[:20]}, but has {len(texts)} boundaries.",
            where=where,
            remedy="Save the answer unchanged.",
        )


def _recognise_policies(chunk: Chunk) -> int:
    keys = chunk.keys.keys()
    found = len(_OF_POLICIES & keys)
    return SURE if found > 1 else LIKELY if found and "bundles" in keys else NO


def _read_policies(chunk: Chunk) -> Iterator[Piece]:
    value = chunk.value
    bundles = value.get("bundles")
    is_absent = bundles is None or (isinstance(bundles, dict) and bundles.get("boundaries") in (None, []))
    if not is_absent:
        _check_bundles(bundles, f"{chunk.source}: bundles")
    wrong = {field: why for field in _LIMITS if (why := _wrong_limit(value.get(field)))}
    for field, why in wrong.items():
        yield NotUsed(source=chunk.source, why=f"{field} of a namespace left out: {why}. Save the answer unchanged")
    kept = {field: given for field, given in value.items() if field not in wrong}
    yield NamespacePolicies(source=chunk.source, policies=kept, namespace=chunk.namespace)


def _wrong_limit(limits: object) -> str:
    """Return why the limits of clusters are none; empty where they are some, or not set."""
    if limits is None:
        return ""
    if not isinstance(limits, dict):
        return "it is not an object"
    for cluster, rate in limits.items():
        if rate is None:
            continue
        if not isinstance(rate, dict):
            return f"that of {cluster[:_SHOWN]} is not an object"
        try:
            check_rate({**DEFAULT_RATE, **rate}, "")
        except FormatError as error:
            return f"{error.what.rstrip('.')} for {cluster[:_SHOWN]}"
    return ""


def _recognise_group(chunk: Chunk) -> int:
    return SURE if _GROUP_COMMAND in chunk.source.command and not chunk.is_json and len(chunk.lines) == 1 else NO


def _read_group(chunk: Chunk) -> Iterator[AntiAffinityGroup]:
    group = chunk.lines[0].strip().strip('"')
    plain = "" if group == "null" else group
    yield AntiAffinityGroup(source=chunk.source, group=plain, namespace=chunk.namespace)


BUNDLES = Kind(
    "bundles of a namespace", "pulsar-admin namespaces bundles TENANT/NAMESPACE", _recognise_bundles, _read_bundles
)
POLICIES = Kind(
    "policies of a namespace", "pulsar-admin namespaces policies TENANT/NAMESPACE", _recognise_policies, _read_policies
)
GROUP = Kind(
    "anti-affinity group", f"pulsar-admin namespaces {_GROUP_COMMAND} TENANT/NAMESPACE", _recognise_group, _read_group
)
