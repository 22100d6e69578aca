"""`oddly.clean` from beginning to end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import oddly
from oddly.clean.export import EXPORTS
from oddly.clean.findings import summarise
from oddly.errors import InputError
from oddly.records import Run
from tests.clean.conftest import write_pictures
from tests.clean.quick import QUICK, Listener, frozen, rows


def test_tiny_pictures_from_scratch(tmp_path: Path) -> None:
    truth = write_pictures(tmp_path / "photos", 120, side=8, wrong=12)
    out, listener = tmp_path / "run", Listener()
    run = oddly.clean(tmp_path / "photos", out, epochs=8, device="cpu", watcher=listener)
    assert listener.choices["network"] == "resnet8, from scratch" and listener.read == 360
    assert set(run.verdicts.id) == set(truth)
    removed = run.verdicts[~run.verdicts.keep]
    wrong = {name for name, colour in truth.items() if not name.startswith(colour)}
    hits = len(wrong & set(removed.id))
    assert hits >= 30 and len(removed) <= 60  # of 36
    assert (removed.suggested_name == [truth[name] for name in removed.id]).mean() > 0.8
    table = rows(out / "verdicts.csv")
    assert len(table) == 360 and table[0]["keep"] == "False" and table[-1]["keep"] == "True"
    assert (out / "report.html").exists() and rows(out / "unreadable.csv") == []


def test_frozen_features_are_made_once(photos: Path, tmp_path: Path, tiny_weights: Path) -> None:
    out = tmp_path / "run"
    run = oddly.clean(photos, out, **frozen(tiny_weights))
    assert run.config["model"] == "feature_head" and run.config["pool_splits"]
    assert run.config["data"] == str(photos) and len(run.verdicts) == 36
    (shard,) = (out / "features").iterdir()
    before = shard.stat().st_mtime_ns
    with pytest.raises(InputError, match="already contains a finished run"):
        oddly.clean(photos, out, **frozen(tiny_weights))
    again = oddly.clean(photos, out, overwrite=True, **frozen(tiny_weights))
    assert shard.stat().st_mtime_ns == before
    assert again.verdicts.equals(run.verdicts)


@pytest.mark.parametrize("place", ["second", "elsewhere/second"])
def test_the_next_run_takes_over_what_this_one_saw(
    place: str, photos: Path, tmp_path: Path, tiny_weights: Path
) -> None:
    """Decide, apply, clean again: the images are the same."""

    class Reads(Listener):
        def reading(self, done: int, total: int) -> None:
            self.told = [*getattr(self, "told", []), done]

    first, second = Reads(), Reads()
    oddly.clean(photos, tmp_path / "first", watcher=first, **frozen(tiny_weights))
    table = tmp_path / "first" / "labels.csv"
    table.write_text("id,label,remove,decided_by\nred/red5.png,,yes,person\n")
    more = {"labels": str(table), **frozen(tiny_weights)}
    run = oddly.clean(photos, tmp_path / place, watcher=second, **more)
    assert first.told == [*range(4, 37, 4), 36]  # batch by batch
    assert second.told == [36]  # all at once
    assert len(run.verdicts) == 35 and list((run.path / "features").iterdir())


def test_a_run_stopped_while_reading_goes_on(
    photos: Path, tmp_path: Path, tiny_weights: Path
) -> None:
    class Impatient(Listener):
        def begin(self, *_: object) -> None:
            raise KeyboardInterrupt

    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        oddly.clean(photos, out, watcher=Impatient(), **frozen(tiny_weights))
    assert not Run(out).is_done
    resumed = oddly.clean(out=out, resume=True)
    straight = oddly.clean(photos, tmp_path / "other", **frozen(tiny_weights))
    assert resumed.is_done and resumed.verdicts.equals(straight.verdicts)
    with pytest.raises(InputError, match="was started with epochs = 4, not 9"):
        oddly.clean(out=out, resume=True, epochs=9)


def test_what_cannot_be_exported_costs_nothing_else(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(run: oddly.Run, suspects: object) -> Path:
        raise UnicodeEncodeError("utf-8", "\udce9", 0, 1, "surrogates not allowed")

    monkeypatch.setitem(EXPORTS, "cleanlab", fail)
    heard: list[str] = []

    class Listening(Listener):
        def judged(self, run: oddly.Run) -> None:
            heard.extend([*self.notes, "judged"])

    out, wished = tmp_path / "run", ["cleanlab", "ids"]
    with pytest.raises(
        InputError, match="could not write --export cleanlab: .*surrogates.*"
    ) as told:
        oddly.clean(
            photos, out, export=wished, copy_to=tmp_path / "copy", watcher=Listening(), **QUICK
        )
    assert f"(the run itself is in {out})" in str(told.value)
    assert (out / "suspects.txt").exists() and (tmp_path / "copy").is_dir()
    assert heard[-1] == "judged" and not any(note.startswith("wrote") for note in heard)


def test_fine_tuning(photos: Path, tmp_path: Path, tiny_weights: Path) -> None:
    run = oddly.clean(photos, tmp_path / "run", **frozen(tiny_weights, fine_tune=True))
    assert run.config["model"] == "test_efficientnet" and len(run.verdicts) == 36


def test_exports_and_copies_of_a_finished_run(photos: Path, tmp_path: Path) -> None:
    out, listener = tmp_path / "run", Listener()
    oddly.clean(photos, out, **QUICK)
    run = oddly.clean(
        out=out, resume=True, export=["ids", "cleanlab"], top=5, copy_to=tmp_path / "copy",
        watcher=listener,
    )  # fmt: skip
    assert len((out / "suspects.txt").read_text().splitlines()) == 5
    copied = {p.relative_to(tmp_path / "copy").as_posix() for p in tmp_path.glob("copy/*/*.png")}
    assert copied == set(run.verdicts[run.verdicts.keep].id)
    assert sum(note.startswith("wrote ") for note in listener.notes) == 3
    oddly.clean(out=out, resume=True, export="ids", top=2)  # one name needs no list
    assert len((out / "suspects.txt").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"export": ["cleanlabs"]}, "unknown export 'cleanlabs'; did you mean 'cleanlab'"),
        ({"export": "foo"}, "unknown export 'foo'"),
        ({"top": 0}, "--top must be at least 1"),
        ({"percentil": 5}, "unknown option 'percentil'; did you mean 'percentile'"),
        ({"image_size": 2}, "image_size must be within"),
        ({"backbone": "resnet18", "weights": "gone.pth"}, "weights gone.pth: no such file"),
    ],
)
def test_bad_wishes(photos: Path, tmp_path: Path, wishes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        oddly.clean(photos, tmp_path / "run", device="cpu", **wishes)


def test_what_a_person_decided_is_no_suspect_again(tmp_path: Path) -> None:
    """The suspects of one run, wrong or not, as somebody confirmed them, in the next run."""
    write_pictures(tmp_path / "photos", 120, side=8, wrong=12)
    quick = {"epochs": 8, "device": "cpu"}
    first = oddly.clean(tmp_path / "photos", tmp_path / "first", **quick)
    suspects = first.verdicts[~first.verdicts.keep]
    assert len(suspects) > 30
    rows = [f"{row.id},{row.given_name},no,person" for row in suspects.itertuples()]
    table, listener = tmp_path / "labels.csv", Listener()
    table.write_text("\n".join(["id,label,remove,decided_by", *rows]) + "\n")
    run = oddly.clean(
        tmp_path / "photos", tmp_path / "second", labels=table, export="ids", top=300,
        copy_to=tmp_path / "copy", watcher=listener, **quick,
    )  # fmt: skip
    decided = set(suspects.id)
    assert run.verdicts.set_index("id").keep[sorted(decided)].all()
    assert (run.verdicts.reason == "decided by a person").sum() == len(decided)
    assert not decided & set((run.path / "suspects.txt").read_text().splitlines())
    copied = {p.relative_to(tmp_path / "copy").as_posix() for p in tmp_path.glob("copy/*/*.png")}
    assert decided <= copied
    assert run.metrics[-1]["kept"] >= int(run.verdicts.keep.sum())  # they are trained on too
    assert any(f"{len(decided)} labels set by a person" in note for note in listener.notes)


def test_the_summary_is_plain_json(photos: Path, tmp_path: Path) -> None:
    from dataclasses import asdict

    shutil.copy(photos / "red" / "red1.png", photos / "blue" / "again.png")
    run = oddly.clean(photos, tmp_path / "run", **QUICK)
    found = json.loads(json.dumps(asdict(summarise(run))))
    assert (found["images"], found["duplicates"], found["conflicting"]) == (37, 1, 1)
    assert found["suspects"] == int((~run.verdicts.keep).sum())
    assert sum(hit for _, hit, _ in found["classes"]) == found["suspects"]


@pytest.mark.parametrize("out", [None, "run", "red/run"])
def test_nothing_is_written_among_the_images(
    photos: Path, monkeypatch: pytest.MonkeyPatch, out: str | None
) -> None:
    before = sorted(photos.rglob("*"))
    monkeypatch.chdir(photos)
    where = out or "runs/photos-clean"
    with pytest.raises(InputError, match=f"^{where} is inside the images of .*; choose an --out"):
        oddly.clean(".", out, **QUICK)
    assert sorted(photos.rglob("*")) == before
