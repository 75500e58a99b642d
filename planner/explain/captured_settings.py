"""What to say of a snapshot whose settings are not those of its cluster."""

from planner.cluster.releases import release
from planner.cluster.snapshot import SnapshotInfo


def settings_warning(info: SnapshotInfo) -> str:
    """Return what to know, and to do, where the settings could not be captured; empty where they were."""
    if info.settings_from != "defaults":
        return ""
    shown = f"Pulsar {release(info.pulsar_version).name}'s defaults"
    shown += " and the dynamic overrides are" if info.dynamic_settings else " are"
    return (
        f"Settings were not captured: {shown} shown, so decisions may differ from your cluster's. Capture again with"
        " a superuser's token, also ingest an earlier snapshot, or set the settings that differ in a scenario."
    )
