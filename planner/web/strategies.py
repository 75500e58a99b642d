"""Which strategies a page asks, and with which settings."""

from planner.cluster.names import LOAD_BALANCER_ENABLED, SHEDDING_ENABLED
from planner.cluster.settings import Settings

_SWITCHES = (LOAD_BALANCER_ENABLED, SHEDDING_ENABLED)


def as_if_running(config: Settings) -> tuple[Settings, str]:
    """Return the settings with automatic unloading switched on, and a sentence when it is off in the cluster."""
    off = [name for name in _SWITCHES if not config.flag(name)]
    if not off:
        return config, ""
    sentence = (
        f"{' and '.join(off)} {'is' if len(off) == 1 else 'are'} off in this cluster, so Pulsar sheds nothing. The"
        " page shows what the strategy would do with shedding on."
    )
    return config.changed(**dict.fromkeys(off, True)), sentence
