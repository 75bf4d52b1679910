"""How an SQL server is reached: pools, the watchdog, given connections, wake-ups, the doctor."""
