"""Experiments: placement under several configurations, on recorded or drawn arrivals of pods.

A run is a function of its inputs, a configuration and a seed, and gives the same result in any
process. Runs take place on `moorage.what_if` in virtual time; no API server takes part.

- `scenario`: the file that describes an experiment, read whole with every fault listed.
- `sources`, `columns`, `presets`, `rows`, `histories`: nodes and pods from files and traces.
- `jobs`: jobs of several pods, and traces of them.
- `arrivals`: when pods come, how long they run, and the load they make.
- `inputs`: everything a run needs, as data that any process can be given.
- `variants`: the configurations and grids of arguments that are compared.
- `run`, `records`, `sampling`, `fragmentation`, `totals`: one run, its pods, its series, figures.
- `sweep`, `progress`, `result_folder`: all runs, in several processes, resumed where they were
interrupted.
- `on_dask`: runs on a Dask cluster. `memory`: what a run leaves in its process.
- `statistics`, `results`, `tables`: means and intervals over seeds; tables and files.
- `plots`, `page`: pictures, and the report as one HTML page.
- `in_python`, `cluster`: the function and the class that a Python program uses.
"""
