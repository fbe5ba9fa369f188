"""What a program printed, taken apart: events, error bodies, headers, lines, voices."""
