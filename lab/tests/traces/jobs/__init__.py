"""Tests of jobs of several pods."""
