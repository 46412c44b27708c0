"""The mind of one session: model, tools, and the control layer that stands before the host."""
