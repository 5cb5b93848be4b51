"""Tests of the complete search over classes of members and nodes."""
