"""The command line: one file for each command; `help` and `output` are what they share."""
