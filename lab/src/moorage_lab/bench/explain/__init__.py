"""Explanations of pending pods, measured on a full cluster."""
