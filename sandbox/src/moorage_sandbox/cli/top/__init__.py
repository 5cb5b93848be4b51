"""``moorage top``: ``command`` has the options, ``fullness`` counts, ``text`` writes tables."""
