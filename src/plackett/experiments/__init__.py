"""Objectives x seeds -> run folders -> tables: the only room that knows about statistics.

`records`, `statistics` and `tables` do without torch, so that a report of many runs opens quickly anywhere.
"""
