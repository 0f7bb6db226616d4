"""Data types that every room shares, their JSON, units and errors, and how files beside the model are opened."""
