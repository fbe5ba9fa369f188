"""What is known of each agent program: one file a program, mostly data."""
