"""From what the model says (Graph) to what the machine runs (Program)."""
