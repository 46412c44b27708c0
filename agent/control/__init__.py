"""The system control layer: the only code that starts processes or touches the host's files."""
