"""Dispatch under limits, simulated over time."""
