"""A Kubernetes cluster for trying things out: API server, storage, controllers, nodes, and `up`.

It imports the package `moorage`, the scheduler. The scheduler finds its commands and `Sandbox` by
entry points.
"""
