"""What everything else speaks about: snapshots, ranges, hashes, settings, decisions, errors. Data and arithmetic."""
