"""What runs on the devices, and the frame that devices and gateway share."""
