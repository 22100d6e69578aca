"""The command line: parse, call one function, print. One file per family of commands."""

# Importing them adds their commands.
from oddly.cli import benchmark, clean, compare, report, reproduce, review, train
from oddly.cli.app import app, main

__all__ = ["app", "benchmark", "clean", "compare", "main", "report", "reproduce", "review", "train"]
