"""Run the command `millrace` as `python -m streams`."""

from streams.commands.root import main

if __name__ == "__main__":
    main()
