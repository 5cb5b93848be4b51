"""Tools that users and tests of moorage share: builders, a virtual cluster, plugin harnesses.

Belongs here: whatever helps to check moorage, or a plugin, against what it should do. It may use
everything below `service`; nothing below may use it.
"""
