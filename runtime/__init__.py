"""The agent machine itself (pure rooms) and the program around it (the outer ring)."""
