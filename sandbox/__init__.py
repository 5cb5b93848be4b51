"""The tests of the package sandbox are importable from the top of the checkout; nothing else is here."""
