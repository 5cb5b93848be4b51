"""Generators of the pages in docs/ that a program writes; `tools.pages.generate` runs them."""
