"""The nouns that every other room shares: graphs, programs, targets, plans, timelines, profiles, and their JSON."""
