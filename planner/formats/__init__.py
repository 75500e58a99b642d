"""Formats: snapshots as folders, zips, JSON documents and raw captures, all through one validator."""
