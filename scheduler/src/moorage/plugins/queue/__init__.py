"""The plugins that let pods enter the scheduling queue, and the order in which pods leave it.

- `scheduling_gates`: the plugin SchedulingGates.
- `priority_sort`: the plugin PrioritySort.
- `qos_sort`: the plugin QOSSort.
"""
