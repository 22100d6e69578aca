"""Neither package is needed until its adapter is; then the error says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [("lightning", "lightning", "lightning"), ("huggingface", "transformers", "transformers")],
)
def test_without_the_package_the_extra_is_named(module: str, package: str, extra: str) -> None:
    program = (
        f"import sys; sys.modules['{package}'] = None\n"
        "import oddly; from oddly import denoise; import oddly.integrations\n"
        f"import oddly.integrations.{module}"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("oddly.errors.InputError: ")
    assert last.endswith(f'is not installed: pip install "oddly[{extra}]"')
    assert "During handling" not in done.stderr
