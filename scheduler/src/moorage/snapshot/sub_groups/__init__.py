"""Groups that consist of sub-groups, each with its own minimum and its own topology.

Belongs here: the tree of sub-groups that the demands of a group have, and what names it.
"""
