"""The command line: parse, call one function, print. One file per family of commands."""

from oddly.cli import benchmark, report, train  # importing them adds their commands
from oddly.cli.app import app, main

__all__ = ["app", "benchmark", "main", "report", "train"]
