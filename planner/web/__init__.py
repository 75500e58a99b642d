"""The web shell: routing, state, shared pieces of the pages."""
