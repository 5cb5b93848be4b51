"""The tests of the package lab are importable from the top of the checkout; nothing else is here."""
