"""Loops of each kind of operator: which axes it runs over, and the windows of its operands on them."""
