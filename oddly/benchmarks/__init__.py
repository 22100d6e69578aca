"""What denoising costs, measured: each file has one `measure()` that returns plain figures."""
