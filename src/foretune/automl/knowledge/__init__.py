"""What a search begins with: what ships, the user's memory, and priors learnt from both."""
