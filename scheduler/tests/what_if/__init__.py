"""Tests of the room that tries changes on a cluster in memory."""
