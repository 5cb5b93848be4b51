"""Tests of the plugins room: vector answers against scalar references, texts, hints, arguments."""
