"""Makes the tests of lab importable from the top of the checkout; nothing else is here."""
