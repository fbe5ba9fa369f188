"""The stores of one machine, in SQLite files."""
