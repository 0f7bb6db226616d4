"""A profile in the formats of other tools."""
