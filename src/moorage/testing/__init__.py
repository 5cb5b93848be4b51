"""What users and tests of moorage share: the conformance runner, builders, fakes, harnesses.

Belongs here: whatever helps to check moorage, or a plugin, against what it should do. It may use
everything below `service`; nothing below may use it.
"""
