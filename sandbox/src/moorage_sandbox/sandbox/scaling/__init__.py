"""Adds nodes to a running sandbox and removes nodes from it; an API client like any other.

- ``new_nodes`` builds the nodes to create; the sandbox's agents play them.
- ``removal`` says which nodes go first, and ``resize`` gives a cluster a number of nodes.
- ``autoscaler`` adds nodes for pending pods and removes empty nodes. ``growth`` asks the Filters of
  the scheduler, ``groups`` are what new nodes may be, ``idle`` tells since when nodes have been
  empty, and ``watched`` keeps the cluster's objects.
"""
