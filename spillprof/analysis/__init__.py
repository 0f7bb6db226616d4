"""What one plan and its timeline say: pure functions."""
