"""Tests of what each served kind knows about itself."""
