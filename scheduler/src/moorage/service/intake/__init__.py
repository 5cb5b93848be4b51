"""From watch events to the scheduler's state.

Which kinds are watched, how their objects enter, and what plugins and facts learn of a change. Does
not belong here: how objects are kept (`moorage.state`).
"""
