"""What denoising costs and how well it finds wrong labels, measured.

Each file has one `measure()` that returns plain figures; its docstring says what the paper claims,
the command, the cost and the numbers to match.
"""
