"""The runs behind figures of the docs that no command of `oddly` makes: one script per table.

`evidence/README.md` lists every file of `oddly/results` with the command that makes it again.
"""
