"""What the model can call: a registry and one file a tool family."""
