"""What the owners of pods want: plans of Deployments, Jobs, sets, volumes, endpoints; pure.

Place in the flow: a controller gives an owner and its objects to a plan here and carries the steps
out. What-if does the same on a cluster in memory. `objects` has the form in which owners and pods
are read, `pods` says which pods count, and `replicas` how many are wanted.

What belongs here: decisions about what is to be made, changed and deleted. What does not belong
here: watching, writing and waiting, which the controllers do.
"""
