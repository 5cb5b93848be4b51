"""The scheduler as a process: leadership, health, metrics, reloads and the watch over its loop.

Does not belong here: who may read an answer (`serving`), answers about pods (`questions`).
"""
