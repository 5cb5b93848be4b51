"""Tries changes on a cluster that exists only in memory: what would happen, and what would fit.

Objects come in as lists, from a dump or a server; this room reads no file and calls no server.
`lists` reads objects, `world` puts a scheduler's deciding half over them.
"""
