"""Shedding: which bundles leave which broker."""
