"""The nouns of Kubernetes and their pure semantics; no I/O, no clock, no state.

Charter: typed objects (the fields that a scheduler, a node agent or an explanation reads), exact
quantities, selector and taint matching, pod request arithmetic, and "what changed between two
versions". Anything that needs a network, a loop or a cache belongs to another room.

Decoding is strict about types and lenient about unknown fields, which are dropped. So no decoded
object is ever written back whole: writes are patches and subresources.
"""
