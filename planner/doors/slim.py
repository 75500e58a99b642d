"""What the planner uses of a topic's statistics, in the form of `TopicStats`."""

from planner.cluster.pulsar_json import RATES, Json, TopicStats


def slim(producers: int, consumers: int, rates: Json) -> Json:
    """Return statistics that say only this."""
    return {**rates, "producerCount": producers, "subscriptions": {"": {"consumers": [0] * consumers}}}


def slim_stats(stats: Json, where: str = "") -> Json:
    """Return what is used of statistics as Pulsar answers them.

    Raises:
        FormatError: A value is not a number.
    """
    read = TopicStats.of(stats, where)
    return slim(read.producers, read.consumers, dict(zip(RATES, read.rates, strict=True)))
