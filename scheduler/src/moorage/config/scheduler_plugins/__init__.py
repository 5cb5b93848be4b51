"""Arguments of plugins of scheduler-plugins, by subject; `args` lists their kinds.

- `numa`: NodeResourceTopologyMatch.
- `trimaran`: TargetLoadPacking and LoadVariationRiskBalancing.
"""
