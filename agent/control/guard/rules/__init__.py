"""The rules as data: each with examples that must match and others that must not."""
