"""Custom resources that others define and a plugin reads; a server serves them where installed.

- `node_topology`: NodeResourceTopology.
"""
