"""What lowering knows of each operator type: one row an operator, in the module of its kind."""
