"""The command line: one module for each command, and the only place that composes rooms.

Start-up time matters here: modules import click at the top and everything heavy inside the
command that needs it.
"""
