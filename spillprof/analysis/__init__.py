"""Pure functions of one plan and its timeline: attribution, time by cause, occupancy, roofline."""
