"""Who a segment is for."""

Owner = tuple[int | str, int]
"""(buffer, or the purpose of a step's scratch; tick at which its space begins)."""
