"""How a time is written: the parts that a reset time is made of."""
