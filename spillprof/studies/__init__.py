"""Many runs, or runs compared: sweeps, diffs, the gate, its history."""
