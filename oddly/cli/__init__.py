"""The command line: parse, call one function, print. One file per family of commands."""

from oddly.cli import benchmark, clean, train  # importing them adds their commands
from oddly.cli.app import app, main

__all__ = ["app", "benchmark", "clean", "main", "train"]
