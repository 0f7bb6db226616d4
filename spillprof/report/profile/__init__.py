"""A profile as text, Markdown, HTML and JSON."""
