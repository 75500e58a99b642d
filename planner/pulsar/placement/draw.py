"""The draw among acceptable brokers, reproducible by seed where Pulsar's is not."""

import random
from collections.abc import Sequence


def draw(acceptable: Sequence[str], bundle: str, seed: int) -> str | None:
    """Return one of the brokers, each with the same probability over seeds and bundles; None when there is none.

    Args:
        acceptable: Broker ids, in candidate order.
        bundle: Full bundle name, so that the bundles of one cycle are drawn independently.
        seed: The scenario's seed.
    """
    if len(acceptable) < 2:  # noqa: PLR2004 - nothing to draw, and a generator takes long to make
        return acceptable[0] if acceptable else None
    return random.Random(f"{seed}/{bundle}").choice(acceptable)  # noqa: S311 - a simulation, no secret
