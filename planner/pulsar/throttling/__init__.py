"""Dispatch throttling: how many messages and bytes a dispatcher may read."""
