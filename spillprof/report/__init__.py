"""Renders values as text, Markdown, HTML, JSON and formats of other tools."""
