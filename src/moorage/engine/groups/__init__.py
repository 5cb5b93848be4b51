"""The scheduling cycle of pod groups.

`cycle` places the members of a group one after another with the cycle of their profile; `decision`
holds the outcome for each member; `whole_gangs` adds to victims the rest of their gangs; `room`
bounds how many members could have a place.
"""
