"""Claims of pods: which there are, where they can be had, and how an allocation is written.

What `moorage.plugins.dynamic_resources` is made of; which devices an allocation consists of is
decided in `moorage.plugins.devices`.
"""
