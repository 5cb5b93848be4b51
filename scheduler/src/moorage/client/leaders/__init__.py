"""The way to the scheduler that leads: what it writes into its Lease, and how a command gets there.

Belongs here: the annotation of the Lease (`address`), looking for it (`finding`), and the tunnel to
a pod through the API server (`port_forward`). Does not belong here: the election itself
(``service/process/leader``), and what is asked (``cli/ask``). Lowest first: address, port_forward,
finding.
"""
