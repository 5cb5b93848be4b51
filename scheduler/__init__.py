"""The tests of the package scheduler are importable from the top of the checkout; nothing else is here."""
