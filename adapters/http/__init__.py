"""HTTP as a chat platform: a JSON API and server-sent events."""
