"""``moorage reason``: what a code of the vocabulary of reasons means."""
