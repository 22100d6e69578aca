"""oddly review and apply: look at the suspects, decide, use what was decided."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oddly.cli.app import app, err_console

RUN = Annotated[Path, typer.Argument(help="A run folder.")]
IMAGES = Annotated[
    Path | None, typer.Option(help="Where the pictures lie, if not where they were.")
]
DECISIONS = Annotated[
    Path | None, typer.Option(help="The file of decisions [RUN/decisions.sqlite].")
]


@app.command()
def review(
    run: RUN,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of 127.0.0.1; the next one where it is taken.")
    ] = 8640,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="The N most suspicious examples (default: all removed ones)."),
    ] = None,
    images: IMAGES = None,
    decisions: DECISIONS = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the link in the browser.")] = False,
) -> None:
    """Look at a run's suspects in the browser, one after another, and decide."""
    import webbrowser

    from oddly.records import Run
    from oddly.review.server import serve
    from oddly.review.session import Session

    session = Session(Run(run), top, images, decisions)

    def announce(link: str, taken: int) -> None:
        if port and taken != port:
            err_console.print(f"port {port} is in use, took {taken}", highlight=False)
        print(f"review at  {link}", flush=True)
        progress = session.progress()
        left = progress.total - progress.decided - progress.skipped
        err_console.print(
            f"{progress.total:,} suspects, {left:,} still open. Ctrl-C ends; decisions are kept.",
            highlight=False,
        )
        if open_:
            webbrowser.open(link)

    try:
        serve(session, port, announce)
    except KeyboardInterrupt:
        pass
    finally:
        session.decisions.close()
    err_console.print(f"decisions in {session.decisions.path}", highlight=False, soft_wrap=True)
