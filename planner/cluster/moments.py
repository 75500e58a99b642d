"""Moments, in ms since 1970."""

LAST_MS = 253_402_300_799_999
"""The last moment that anything here may have: the end of the year 9999, after which no calendar goes on."""
