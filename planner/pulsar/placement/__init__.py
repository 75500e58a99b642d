"""Placement: which broker gets a bundle that nobody owns."""
