"""One-shot sandboxes: every command and every file tool runs inside one."""
