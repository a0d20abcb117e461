"""Checks of operators, planned from torch's OpInfo database."""
