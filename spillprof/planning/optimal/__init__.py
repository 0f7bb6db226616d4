"""Strategy ``optimal``: the best plan that many searches find, and how far it can be from the optimum."""
