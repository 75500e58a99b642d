"""A bundle that goes from one broker to another: the one type for what is planned, predicted and carried out."""

from dataclasses import dataclass


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
