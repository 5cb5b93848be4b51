"""The first hour of a newcomer, typed by a program (`first_hour.py`), with its whole output."""
