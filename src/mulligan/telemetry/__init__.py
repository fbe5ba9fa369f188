"""What happened, told to the outside: one listener a file."""
