"""How often and how fast the complete search places groups that fit by construction.

- `generator`: groups of unlike pods, and nodes with room for them, from a seed.
- `run`: decides about the groups with the default profile and Coscheduling.
- `report`: the table of a run.
"""
