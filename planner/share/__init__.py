"""What a person takes away: links, scenario files, admin commands, exports, reports."""
