"""Processes that may die: started, watched from outside, and ended with all that they started.

Nothing here knows of pytest or of cells. :mod:`child` starts a process under a :mod:`nanny` and
talks with it, :mod:`watchdog` waits for its answers, :mod:`ending` says how it died.
"""
