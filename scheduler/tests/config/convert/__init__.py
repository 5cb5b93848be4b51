"""Tests of the conversion of earlier configurations."""
