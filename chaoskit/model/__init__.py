"""Layer 0: the nouns as frozen data. No I/O, no clock, no randomness."""
