"""Run the command `millrace` as `python -m streams`."""

from streams.cli import main

if __name__ == "__main__":
    main()
