"""Factors between units, each defined once: `MS_PER_MIN` is the number of ms in a min, `DAY_MS` a day in ms."""

from typing import Final

MIB: Final = 2**20
"""Bytes per MiB. Throughput is in MiB/s everywhere, like Pulsar's own limits, whatever their names say."""

GIB: Final = 2**30
"""Bytes per GiB."""

MS_PER_S: Final = 1_000
MS_PER_MIN: Final = 60_000
NS_PER_MS: Final = 1_000_000
S_PER_MIN: Final = 60
MIN_PER_HOUR: Final = 60

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 86_400_000
DAY_S: Final = 86_400

BYTES_PER_KBIT: Final = 125.0
KBIT_PER_BYTE: Final = 8 / 1000
KBIT_PER_GBIT: Final = 1e6
"""Capacities of network cards are in Gbit/s; limits and usage are in kbit/s."""
