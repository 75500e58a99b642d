"""What a simulation means: diagnosis, what would have to change, failure review."""
