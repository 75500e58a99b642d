"""A bundle that goes from one broker to another: the one type for what is planned, predicted and carried out."""

from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Relocation:
    """A bundle that leaves its donor for its receiver. What strategies choose is `planner.cluster.decisions.Move`.

    Attributes:
        bundle: Full bundle name.
        source: The donor, which had it; empty for nobody.
        destination: The receiver; empty where there is none, or it is not known.
        acceptable: Brokers that Pulsar might have chosen instead; one when the choice is determined.
        why: One sentence.
        topics: Topics that are disconnected.
        producers: Producers that have to reconnect.
        consumers: Consumers that have to reconnect.
        msg_rate_per_s: Message rate in + out of the bundle.
        throughput_bytes_per_s: Its throughput in + out.
        may_stay: Predicted: Pulsar draws the receiver, and may draw the donor; then the bundle stays.
    """

    bundle: str = ""
    source: str = ""
    destination: str = ""
    acceptable: tuple[str, ...] = ()
    why: str = ""
    topics: int = 0
    producers: int = 0
    consumers: int = 0
    msg_rate_per_s: float = 0.0
    throughput_bytes_per_s: float = 0.0
    may_stay: bool = False


def moved(snapshot: Snapshot, bundle: int, source: str, destination: str, why: str) -> Relocation:
    """Return that a bundle, by its position, goes from one broker to another, with the numbers of a snapshot."""
    table = snapshot.bundles
    return Relocation(
        bundle=snapshot.bundle_names[bundle],
        source=source,
        destination=destination,
        why=why,
        topics=int(table.topics[bundle]),
        producers=int(table.producers[bundle]),
        consumers=int(table.consumers[bundle]),
        msg_rate_per_s=float(table.msg_rate_per_s(bundle)),
        throughput_bytes_per_s=float(table.throughput_bytes_per_s(bundle)),
    )
