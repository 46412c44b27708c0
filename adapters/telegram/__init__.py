"""Chat over Telegram: long polling or a webhook, approval cards as inline keyboards.

Only :mod:`adapters.telegram.adapter` is imported from outside. The bot library is loaded when the adapter starts, in a
worker thread: what imports it is :mod:`adapters.telegram.connection` and what that imports.
"""
