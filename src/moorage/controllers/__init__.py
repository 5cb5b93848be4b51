"""The few controllers a sandbox needs so that workloads end as they would; API clients.

Belongs here: what kube-controller-manager and a storage driver would do for the volumes of pods
(binding, provisioning, claims of ephemeral volumes, the default StorageClass), and the status of
disruption budgets. It knows the API server only through `moorage.client`. What is to be done is
decided by pure functions (``volume_steps``, ``disruption_steps``); ``volumes`` and ``disruption``
watch and write.
"""
