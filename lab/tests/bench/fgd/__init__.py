"""Tests of the repeated experiments on GPU sharing."""
