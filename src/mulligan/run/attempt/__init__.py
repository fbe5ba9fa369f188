"""One attempt of a run: started, read, judged."""
