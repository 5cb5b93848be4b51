"""Tests of run times and roll-outs."""
