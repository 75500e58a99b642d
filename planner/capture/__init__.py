"""A live cluster: what is asked of it, read-only, and kept as raw answers, snapshots and history."""
