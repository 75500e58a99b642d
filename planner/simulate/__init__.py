"""Simulation: load-balancer cycles, sequences of snapshots, generated clusters."""
