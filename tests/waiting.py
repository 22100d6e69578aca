"""For tests on a GPU: does the host wait for it?"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def waiting_forbidden() -> Iterator[None]:
    """Any wait for the GPU raises."""
    with warnings.catch_warnings():  # "a prototype feature", said once per process
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
