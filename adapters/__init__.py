"""Speak a platform: translate its events into the vocabulary of :mod:`adapters.base`, and back."""
