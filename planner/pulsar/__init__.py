"""Every rule that mirrors a Pulsar class, and nothing else."""
