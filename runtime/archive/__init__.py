"""Object stores, attempts, steps, keyframes, the hash chain and its verification."""
