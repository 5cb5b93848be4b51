"""Tests of ``moorage plugin``."""
