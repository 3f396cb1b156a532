"""`python -m plackett` is the command."""

from plackett.cli import main

main()
