"""Tests of the plugins that share GPUs."""
