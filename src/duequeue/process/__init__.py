"""What a process has to take care of: forks, signals, objects that it shares."""
