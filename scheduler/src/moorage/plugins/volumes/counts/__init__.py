"""The numbers by which volume plugins judge many rows that are tried without some pods."""
