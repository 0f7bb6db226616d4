"""Program to Plans: addresses, evictions and transfers, and a lower bound on the spill bytes of any plan."""
