"""Makes the tests of sandbox importable from the top of the checkout; nothing else is here."""
