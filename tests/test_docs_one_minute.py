"""docs/reproduce.md on one minute of one GPU, and on CIFAR-10 at full size, as stored."""

from __future__ import annotations

from statistics import mean
from typing import Any

import numpy as np

from oddly.experiments.results import Store
from oddly.experiments.sizes import FAST, FULL
from oddly.experiments.snapshot import EDGES
from oddly.experiments.table1_cifar_uniform import MINUTE_ROWS, make_job
from tests.pages import rows, short, stored, words_of

PAGE = words_of("docs/reproduce.md")
TRIALS: list[dict[str, Any]] = stored("one_minute_trials.json")["rows"]
BEST = "100 epochs, CutMix, mirrored beyond the edge"


def test_the_table_of_trials() -> None:
    table = rows("docs/reproduce.md", "| | test accuracy, % | with mirror images |")
    names = [trial["what"] for trial in TRIALS]
    assert [row[1:] for row in table] == [
        [f"{trial['test_accuracy']:.2f}", f"{trial['mirrored']:.2f}"] for trial in TRIALS
    ]
    assert [row[0] for row in table[:-3]] == names[:-3] and set(names[-4:]) == {BEST}
    assert [trial["seed"] for trial in TRIALS] == [0] * (len(TRIALS) - 3) + [1, 2, 0]
    again = f"the same, seed 0 again, alone on the card: {TRIALS[-1]['seconds_alone']:.1f} s"
    assert [row[0] for row in table[-3:]] == ["the same, seed 1", "the same, seed 2", again]


def test_what_is_said_of_crops_that_go_on_mirrored() -> None:
    best = [trial for trial in TRIALS if trial["what"] == BEST]
    assert "brings all four trainings above 92.8 % with mirror images" in PAGE
    assert len(best) == 4 and min(trial["mirrored"] for trial in best) > 92.8
    alone = mean(trial["test_accuracy"] for trial in best)
    assert f"and their mean to {alone:.1f} % without" in PAGE


def summaries(row: str) -> list[dict[str, Any]]:
    found = (Store().find(make_job(FAST, row, "cifar10", 0.4, seed).config) for seed in range(3))
    return [dict(result.summary) for result in found if result]


def test_what_a_minute_gets() -> None:
    erm, cut, black, ours = (summaries(row) for row in MINUTE_ROWS)
    each = [run["test_accuracy"] for run in ours]
    ended = f"ended at {each[0]:.2f}, {each[1]:.2f} and {each[2]:.2f} % (three seeds), each above"
    assert ended in PAGE and min(each) > 92.8
    seconds = [run["seconds"] for run in ours]
    assert f"in {min(seconds):.0f} to {max(seconds):.0f} s on one H200" in PAGE
    assert max(seconds) < 60
    for name in ("precision", "recall"):
        assert len({two(run[name]) for run in ours}) == 1
    assert (
        f"precision {two(ours[0]['precision'])} and recall {two(ours[0]['recall'])}. With" in PAGE
    )
    before = [run["test_accuracy"] for run in black]
    assert sum(accuracy >= 92.8 for accuracy in before) == 2 and mean(before) < 92.8
    told = f"two of three seeds reached 92.8 %, and their mean, {mean(before):.2f} %, did not."
    assert told in PAGE
    for page in (PAGE, words_of("README.md")):
        assert f"{mean(each):.1f} %" in page
    others = [mean(run["test_accuracy"] for run in runs) for runs in (cut, erm)]
    assert "no pruning, CutMix reaches {:.1f} %, plain training {:.1f} %".format(*others) in PAGE


def test_the_papers_rule_on_cifar10_at_full_size() -> None:
    job = make_job(FULL, "ODD", "cifar10", 0.4, 0)
    run, other = (make_job(FULL, "ODD", data, 0.4, 0).trunk for data in ("cifar10", "cifar100"))
    assert run and other
    result, trunk, hundred = (Store().find(config) for config in (job.config, run, other))
    assert result and trunk and hundred
    end, looks = result.summary, trunk.snapshots
    behind = 92.8 - end["test_accuracy"]
    assert f"rule ended at {end['test_accuracy']:.2f} %, {behind:.2f} below the paper" in PAGE
    far = [looks[epoch]["ks_noise_normal"] for epoch in sorted(looks, key=int)]
    assert (
        far == sorted(far)
        and f"right and wrong labels is {two(far[-1])}, the highest so far" in PAGE
    )
    simulated = [each.snapshots["75"]["ks_noise_simulated"] for each in (trunk, hundred)]
    assert "the real noise is {}, against {} on CIFAR-100".format(*map(two, simulated)) in PAGE
    ends = (spread_of(looks["75"]["histogram"][which]) for which in ("noise", "simulated"))
    real, drawn = (" and ".join(f"{end:.1f}" for end in each) for each in ends)
    middle = f"losses between {real}, of the simulated ones between {drawn}."
    assert f"Eight in ten of the real wrong labels have {middle}" in PAGE
    ten = looks["75"]["by_percentile"]["10"]
    lost = f"a tenth of the wrong labels and loses {100 * (1 - ten['recall']):.0f} %"
    assert f"So p = 10 cuts at {ten['threshold']:.2f}, where it should lose {lost}" in PAGE
    removed, wrong = end["removed_fraction"], end["noise"]["realised"]
    assert f"removes {100 * removed:.0f} % of the labels where {100 * wrong:.0f} % are" in PAGE
    assert f"precision {two(end['precision'])} and recall {two(end['recall'])}, where" in PAGE
    found = end["recall"] * wrong
    of_right = (removed - found) / (1 - wrong)  # right labels removed, replaced or not
    counted = found + (0.4 - wrong) * of_right
    by_count = f"about {two(counted / 0.4)} and precision {two(counted / removed)}"
    assert f"By that count recall is {by_count} (if these are removed as often" in PAGE
    thirty = looks["75"]["by_percentile"]["30"]
    would = f"precision {two(thirty['precision'])} and recall {two(thirty['recall'])}"
    assert f"With p = 30, the same losses would have given {would}." in PAGE


def spread_of(counts: list[int]) -> list[float]:
    """Where a tenth and nine tenths of the losses lie below, read off the histogram."""
    below = np.concatenate([[0], np.cumsum(counts)]) / sum(counts)
    return [float(np.interp(share, below, EDGES)) for share in (0.1, 0.9)]


def two(value: float) -> str:
    return short(round(value, 2)).rstrip("0")
