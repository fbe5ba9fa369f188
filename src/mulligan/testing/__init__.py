"""Time and luck under control, for tests of code that uses Mulligan."""
