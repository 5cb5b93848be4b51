"""A Kubernetes scheduler in Python."""
