"""Rules that hold in every simulation, whatever users and faults do.

`at_writes` looks at each write of a scheduler when the server makes it; `inside` looks into the
schedulers between two steps; `at_rest` looks at the whole cluster when faults are over and every
timer had its time. An invariant is a function with a name, a sentence, and the incident that it
comes from. The rules are written anew from Kubernetes' documentation over plain objects. They share
no code with the scheduler that they judge.
"""
