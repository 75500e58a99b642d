"""Advice on bundles over weeks of many clusters, as one job on Spark."""
