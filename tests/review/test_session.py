from __future__ import annotations

from pathlib import Path

import pytest

from oddly.errors import InputError
from oddly.records import Run
from oddly.review.decisions import Decision, Stale
from oddly.review.session import BadRequest, Progress, Session
from tests.review.conftest import write_run


@pytest.fixture
def session(run: Run) -> Session:
    return Session(run)


def test_starts_with_the_worst_and_resumes_with_the_first_open_one(
    run: Run, session: Session
) -> None:
    start = session.overview()
    assert (start["data"], start["examples"], start["classes"]) == ("photos", 9, 3)
    assert start["card"]["id"] == "cat/0.png" and start["card"]["revision"] == 0
    places = [address.split("?") for address in start["prefetch"]]
    assert [path for path, _ in places] == ["/image/1", "/image/2", "/image/3"]
    # A browser that kept this review's pictures must not show them in the next.
    assert start["card"]["image"] != Session(run).overview()["card"]["image"]
    session.decide(0, "keep", None, 0)
    session.decide(1, "skip", None, 0)
    session.decide(3, "remove", None, 0)
    session.decisions.close()
    again = Session(run)
    assert again.overview()["card"]["id"] == "emu/2.png"
    last = Decision(3, "cat/3.png", "remove", None)
    assert again.progress() == Progress(total=6, decided=2, skipped=1, undo=last)
    again.decisions.close()


def test_what_each_action_means(session: Session) -> None:
    assert session.decide(0, "keep", "ignored", 0).label == "cat"
    assert session.decide(1, "suggestion", None, 0).label == "emu"
    assert session.decide(2, "relabel", "dog", 0).label == "dog"
    assert session.decide(3, "remove", "ignored", 0).label is None
    assert session.decide(4, "skip", None, 0).label is None
    for rank, action, label in (
        *((5, "relabel", "zebra"), (5, "relabel", None), (5, "undo", None), (5, "eat", None)),
        *((6, "keep", None), (-1, "keep", None)),
    ):
        with pytest.raises(BadRequest):
            session.decide(rank, action, label, 0)
    last = Decision(5, "dog/4.png", "skip", None)
    assert session.progress() == Progress(total=6, decided=4, skipped=1, undo=last)
    session.decisions.close()


def test_to_choose_the_label_it_has_is_to_keep_it(session: Session) -> None:
    given = session.card(0)["given"]
    decided = session.decide(0, "relabel", given, 0)
    assert (decided.action, decided.label) == ("keep", given)
    session.decisions.close()


def test_finding_the_next(session: Session) -> None:
    for rank in (0, 2, 5):
        session.decide(rank, "remove", None, 0)
    session.decide(4, "skip", None, 0)
    assert session.find(-1, "open") == 1
    assert session.find(1, "open") == 3
    assert session.find(3, "open") == 1  # round again
    assert session.find(0, "skipped") == 4
    ranks = [card["rank"] for card in session.cards(0, 10, "decided")["cards"]]
    assert ranks == [0, 2, 5]
    page = session.cards(1, 2, "all")
    assert [card["rank"] for card in page["cards"]] == [1, 2] and page["next"] == 3
    assert session.cards(3, 9, "all")["next"] is None
    with pytest.raises(BadRequest, match="no such filter"):
        session.find(0, "everything")
    session.decide(1, "keep", None, 0)
    session.decide(3, "keep", None, 0)
    assert session.find(-1, "open") is None and session.step(None)["card"] is None
    session.decisions.close()


def test_undo_goes_back_to_the_suspect(session: Session) -> None:
    made = session.decide(2, "remove", None, 0)
    assert session.undo(made.revision) == 2
    assert session.progress() == Progress(total=6, decided=0, skipped=0, undo=None)
    assert session.card(2)["action"] is None and session.card(2)["revision"] == 2
    session.decisions.close()


def test_two_servers_on_one_run_see_each_other(run: Run) -> None:
    mine, theirs = Session(run), Session(run)
    theirs.decide(0, "remove", None, 0)
    with pytest.raises(Stale):
        mine.decide(0, "keep", None, 0)
    assert mine.card(0)["action"] == "remove" and mine.progress().decided == 1
    mine.decide(0, "keep", None, mine.card(0)["revision"])
    assert theirs.overview()["card"]["rank"] == 1
    assert theirs.card(0)["action"] == "keep"
    mine.decisions.close()
    theirs.decisions.close()


def test_no_suggestion_where_the_network_agrees(tmp_path: Path, photos: Path) -> None:
    run = write_run(tmp_path / "r", ["cat/0.png"], photos, class_names=["cat"])
    session = Session(run)
    assert session.card(0)["suggested"] is None and session.card(0)["agrees"]
    session.decisions.close()


def test_a_network_that_nobody_asked_does_not_agree(tmp_path: Path, photos: Path) -> None:
    """As `save_run` leaves it where it is given no predictions."""
    session = Session(write_run(tmp_path / "r", ["cat/0.png"], photos, predicted=False))
    assert session.card(0)["suggested"] is None and not session.card(0)["agrees"]
    session.decisions.close()


def test_the_first_suspect_without_a_picture_is_told(
    tmp_path: Path, photos: Path, session: Session
) -> None:
    assert session.about_pictures() is None
    (tmp_path / "table.csv").touch()
    run = write_run(tmp_path / "r", ["../elsewhere/a.png"], tmp_path / "table.csv")
    lost = Session(run)
    told = lost.about_pictures()
    lost.decisions.close()
    assert told and "elsewhere/a.png" in told and "--images DIR" in told


def test_nothing_to_review(tmp_path: Path, photos: Path) -> None:
    session = Session(write_run(tmp_path / "r", ["cat/0.png"], photos, keep=[True]))
    assert session.overview()["card"] is None and session.progress().total == 0
    session.decisions.close()


def test_decisions_about_other_classes_are_refused(
    tmp_path: Path, photos: Path, session: Session
) -> None:
    session.decide(0, "relabel", "emu", 0)
    session.decisions.close()
    other = write_run(tmp_path / "r", ["cat/0.png"], photos, class_names=["cat", "dog"])
    with pytest.raises(InputError, match="contains class 'emu', which this run does not have"):
        Session(other, decisions=session.decisions.path)
