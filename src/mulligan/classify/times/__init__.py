"""How people, programs and clocks write a time: the parts that a reset time is made of."""
