"""Settings chosen from replays: objectives, the front, the advisor, the search."""
