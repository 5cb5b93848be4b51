"""A whole cluster on one machine: API server, fake nodes and a scheduler, with one command.

Belongs here: putting the parts together in processes, starting and ending them, and showing
progress. The parts themselves live elsewhere and do not depend on the sandbox.
"""
