"""Plans: phases of agents, run as one."""
