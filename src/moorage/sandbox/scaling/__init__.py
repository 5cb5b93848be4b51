"""Adds nodes to a running sandbox and removes nodes from it; an API client like any other.

- ``new_nodes`` builds the nodes to create; the sandbox's agents play them.
- ``removal`` says which nodes go first.
"""
