"""Tests of the room that decides beside the scheduler of a live cluster."""
