"""What users and tests of moorage share: builders, a virtual cluster, and harnesses for plugins.

Belongs here: whatever helps to check moorage, or a plugin, against what it should do. It may use
everything below `service`; nothing below may use it.
"""
