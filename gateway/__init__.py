"""The daemon: joins adapters and agents, and is the only package that knows both."""
