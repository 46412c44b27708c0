"""Telegram: the Bot API's events, messages and cards."""
