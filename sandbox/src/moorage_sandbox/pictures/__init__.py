"""Pictures of clusters, drawn with matplotlib.

Place in the flow: `moorage plot`, benchmarks and simulations count what a picture shows, then
draw it. `files` says which files can be drawn, and writes the same bytes for the same picture.
`bars` draws nodes as bars of their pods.

What belongs here: drawings of nodes and pods that more than one room needs. What does not belong
here: the series of one kind of run, which its own room draws.
"""
