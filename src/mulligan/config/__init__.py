"""Files into the core's dataclasses: one loader, one kind of error message."""
