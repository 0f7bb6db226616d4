"""Values to text, Markdown, HTML and JSON."""
