"""Addresses for the residency blocks of long programs: by ejecting what is in the way, then by exchanging gaps."""
