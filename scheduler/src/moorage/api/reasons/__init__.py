"""Reasons why a pod has no node, as codes of a closed vocabulary (`codes`)."""
