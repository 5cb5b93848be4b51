"""The kinds of the cluster itself: nodes, namespaces, classes of pods, rights, Events, settings."""
