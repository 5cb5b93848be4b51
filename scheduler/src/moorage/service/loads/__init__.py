"""Keeps the loads of nodes current, beside decisions (`fetcher`)."""
