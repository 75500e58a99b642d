"""Remedies that were tried: what an operator can do, simulated on this cluster before it is recommended."""
