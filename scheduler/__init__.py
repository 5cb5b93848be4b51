"""Makes the tests of scheduler importable from the top of the checkout; nothing else is here."""
