"""Store: the workspace database with the snapshots a person has loaded, and the samples that come along."""
