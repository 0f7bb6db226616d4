"""Strategies: which buffer leaves SRAM when space is needed."""
