"""Gangs of pods: how fast one is decided, and what comes of jobs that arrive at random."""
