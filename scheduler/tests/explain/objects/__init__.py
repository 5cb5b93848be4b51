"""Tests of `moorage.explain.objects`."""
