"""The two load managers of Pulsar."""

from enum import StrEnum


class LoadManager(StrEnum):
    """Which load manager the cluster runs."""

    MODULAR = "modular"
    EXTENSIBLE = "extensible"
