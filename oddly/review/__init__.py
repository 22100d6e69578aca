"""`oddly review`: look at the suspects of a run in the browser, decide, and keep every decision.

Reading order: decisions.py (what was decided, on disk), suspects.py (what to decide, worst first),
images.py (the pictures, safely), session.py (all three as the page sees them), guard.py (who has
access), server.py (the routes), apply.py and copying.py (decisions become labels). No torch here.
"""
