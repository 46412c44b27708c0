"""The one HTTP listener: login, health, metrics, the chat page, and the adapters' routes."""
