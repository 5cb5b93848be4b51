"""Pod groups whose members are placed together or not at all.

- `gang_scheduling`: the plugin GangScheduling, for the groups of Kubernetes.
- `topology_domains`: the placements of a group with a topology, for both plugins.
- `topology_placement_generator`: the plugin TopologyPlacementGenerator.
- `pod_group_pods_count`: the plugin PodGroupPodsCount.
- `coscheduling`: the plugin Coscheduling, for groups that pods name in labels.
- `coscheduling_hints`: the events that may cure a rejection by Coscheduling.
- `coscheduling_rules`: the reasons why Coscheduling does not try a group yet.
"""
