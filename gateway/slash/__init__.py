"""The words that people type to control a session."""
