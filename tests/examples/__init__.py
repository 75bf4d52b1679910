"""The example applications, run as their readers would run them."""
