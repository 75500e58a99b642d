"""Plans: scenarios as links and files, what to do as admin commands, exports and reports."""
