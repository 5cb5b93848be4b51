"""What attacks on the embedded cluster and the command line have found, kept as tests.

A file covers one way in. An attack that once succeeded is a row of a table here, beside its
siblings; what a unit does for itself is tested beside that unit.
"""
