"""The pure core: policies, failures, decisions. It reads no clock, random number or file."""
