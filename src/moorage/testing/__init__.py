"""Tools that users and tests of moorage share: builders, a virtual cluster, plugin harnesses.

Belongs here: tools that check the behaviour of moorage or of a plugin. This package may use
everything below `service`; nothing below may use this package.
"""
