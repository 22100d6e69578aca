"""Slow, obvious NumPy twins of the fast code in `oddly.core`."""
