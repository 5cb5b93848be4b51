"""What an attacker tried, kept as tests: each finding of issue 23, and its siblings."""
