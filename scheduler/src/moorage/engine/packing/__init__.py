"""The complete search for places of unlike pods: vector bin packing over classes; pure.

- `problem`: classes of members and of nodes, and a smaller problem with the same answer.
- `apart`: classes of members that exclude each other on a node.
- `bounds`: shortages that a sum or a count proves.
- `search`: the search for places, or for the proof that there are none.
"""
