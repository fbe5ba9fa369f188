"""The public API of the library: Guard, retry, task, judges and defaults."""
