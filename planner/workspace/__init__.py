"""The workspace: the DuckDB file with the snapshots a person has loaded, and the samples that come along."""
