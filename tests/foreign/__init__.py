"""Clients nobody here wrote, against the API server over HTTPS."""
