"""What-if questions: each answer comes from a simulation of the changed run."""
