"""Metadata stores: what only they know of a cluster."""
