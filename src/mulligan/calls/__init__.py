"""The only code that waits."""
