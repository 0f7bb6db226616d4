"""Ejection search: addresses for very many blocks, with ejections, extra spills and moves inside SRAM."""
