"""Tests that kill real processes."""
