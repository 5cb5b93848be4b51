"""Rows of pods as text (`text`), and durations (`durations`), for several commands; pure."""
