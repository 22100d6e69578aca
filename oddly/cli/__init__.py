"""The command line: parse, call one function, print. One file per family of commands."""

# Importing them adds their commands.
from oddly.cli import benchmark, compare, reproduce, review, train
from oddly.cli.app import app, main

__all__ = ["app", "benchmark", "compare", "main", "reproduce", "review", "train"]
