"""Adapters for other people's training loops: thin, over `core.Denoiser`."""
