"""Conformance: decides recorded vectors with the planner's public functions and compares with what Pulsar decided."""
