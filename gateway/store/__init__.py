"""Everything durable: one SQLite database with a single writer."""
