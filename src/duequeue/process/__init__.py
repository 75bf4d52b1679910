"""What concerns the whole process: forks, signals, and objects that its queues share."""
