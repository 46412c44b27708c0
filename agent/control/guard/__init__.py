"""Reads a shell command and says whether it may run, must be asked about, or never runs."""
