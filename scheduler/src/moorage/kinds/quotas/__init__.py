"""Limit ranges and resource quotas: their rules, and whether they allow an object."""
