"""Days of history under other settings: spec, kernel, runners, jobs, results and their queries."""
