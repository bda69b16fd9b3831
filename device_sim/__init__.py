"""The world outside the hub, simulated: pets with hidden causes, devices, and their owner."""
