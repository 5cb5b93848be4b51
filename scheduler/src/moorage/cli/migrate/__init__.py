"""``moorage migrate``: gives some of the pods to another scheduler; `policy` is what it writes."""
