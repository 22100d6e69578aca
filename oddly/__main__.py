"""`python -m oddly …` from a bare checkout."""

from oddly.cli import main

if __name__ == "__main__":
    main()
