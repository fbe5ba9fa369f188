"""One attempt of a run: starts the program, reads its output, decides what follows."""
