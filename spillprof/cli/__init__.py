"""The command line: one module a command, and the only place that prints errors and chooses exit codes."""


def main() -> None:
    """Run the command line."""
    raise SystemExit(0)
