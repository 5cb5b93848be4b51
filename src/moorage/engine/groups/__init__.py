"""The scheduling cycle of pod groups.

`cycle` places the members of a group one after another with the cycle of their profile; `decision`
says what came of it for each; `whole_gangs` adds to victims the gangs they belong to.
"""
