"""`python -m pystream`."""

from pystream.cli import main

if __name__ == "__main__":
    main()
