"""`python -m foretune`, where the command itself is not on the path."""

from foretune.cli import main

if __name__ == "__main__":
    main()
