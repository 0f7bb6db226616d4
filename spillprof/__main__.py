"""Run the command line as ``python -m spillprof``."""

from spillprof.cli import main

if __name__ == "__main__":
    main()
