"""Load: nodes scored by what they really use, as a source of metrics says.

- `target_load_packing`: the plugin TargetLoadPacking.
- `load_variation_risk_balancing`: the plugin LoadVariationRiskBalancing.
- `load_columns`: the loads of nodes, and their capacities of cpu, as arrays.
- `unmeasured_pods`: pods that came too late to be in the metrics.
"""
