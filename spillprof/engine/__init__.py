"""Lowers, fits, orders, plans, plays and bounds a model, and remembers each answer."""
