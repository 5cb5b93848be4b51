"""What a terminal shows after a program has written to it, as text and as a picture."""
