"""Runs cells in a child process, so that no cell's end is the end of the run.

The process that pytest runs in collects, watches and reports; it never touches the device.
:mod:`runner` holds its hooks, :mod:`children` the child that it has at the moment, :mod:`serve` is
what that child does, and :mod:`spawned` how one begins that is not forked.
"""
