"""The kinds of edits a scenario is made of: one file each, and the registry that lists them."""
