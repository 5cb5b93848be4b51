"""Composes the page: which scheduler answers, where it is served, which acts it offers."""
