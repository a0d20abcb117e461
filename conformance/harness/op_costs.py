"""Stand-in."""

OP_COSTS: dict[str, float] = {}
