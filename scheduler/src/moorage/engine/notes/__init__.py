"""The notes of an attempt for its record: filter results, the best nodes, and their scores.

`attempt_note` has the note that the cycle writes. `filtered_nodes` keeps the filter results that
attempts share. `score_log` keeps the scores of a shape and their changes, and `best_nodes` ranks
the ten best nodes from them when somebody asks. `extender_answers` takes down what extenders said.
"""
