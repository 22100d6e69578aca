"""What a run folder says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oddly.records import Run, RunWriter


def finished(path: Path, **summary: Any) -> Run:
    RunWriter.create(path, {"method": "odd"}, {}).finish({"method": "odd", **summary})
    return Run(path)


def test_doubt_about_a_run_and_none_where_an_older_one_says_nothing(tmp_path: Path) -> None:
    for name, said in (("old", {}), ("sure", {"doubt": None}), ("odd", {"doubt": ""})):
        run = finished(tmp_path / name, **said)
        assert run.doubt is None and repr(run).endswith("odd, finished)")
    run = finished(tmp_path / "new", doubt="it has hardly learnt")
    assert run.doubt == "It has hardly learnt."
    assert repr(run).endswith("odd, finished, unreliable (.doubt))")
