"""From a Program to Plans: what lies where and when, what is spilled, and how little any plan could spill."""
