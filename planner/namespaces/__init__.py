"""How many bundles a namespace should have, where to cut it, who is affected, and what growth does to it."""
