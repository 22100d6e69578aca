"""The review benchmark at a small size: right figures, not fast ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oddly.benchmarks.review import Client, make_run, measure, serving
from oddly.errors import InputError
from oddly.records import Run


def test_measures_over_http() -> None:
    figures = measure(examples=2_000, decisions=20)
    assert json.loads(json.dumps(figures)) == figures
    assert figures["suspects"] == 400 and figures["cpu_count"] >= 1
    for name in ("first_page", "next_suspect"):
        middle, most, slowest = (
            figures[f"{name}{kind}_milliseconds"] for kind in ("_median", "", "_slowest")
        )
        assert slowest >= most >= middle > 0
    assert figures["writes"] == 180 and figures["writes_per_second"] > 0
    # a decision on disk and the picture take at least as long as the decision
    assert figures["next_suspect_median_milliseconds"] > 500 / figures["writes_per_second"]


def test_the_run_it_makes_is_reviewed_for_real(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path, 1_000, 2))
    assert (~run.verdicts["keep"]).sum() == 200 and run.is_done
    assert (tmp_path / "data" / run.verdicts["id"][0]).exists()
    with serving(run.path) as (link, _):
        client = Client(link)
        answer = client.decide(0)
        assert answer["saved"]["action"] == "remove" and answer["progress"]["decided"] == 1
        assert client.ask(answer["card"]["image"])[:3] == b"\xff\xd8\xff"
        with pytest.raises(InputError, match="returned 400"):
            client.decide(5_000)
        client.connection.close()


def test_a_server_that_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did not start"), serving(tmp_path):
        pass
