"""The load managers: one cycle, and what the leader remembers between cycles."""
