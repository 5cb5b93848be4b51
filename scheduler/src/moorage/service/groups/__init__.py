"""Pods that are decided about together: their attempts, their conditions, and room held back.

Does not belong here: how a group is placed (`moorage.engine.groups`).
"""
