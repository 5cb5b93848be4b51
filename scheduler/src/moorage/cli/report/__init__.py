"""``moorage report``: the answer of a question as one HTML file, to be mailed or kept."""
