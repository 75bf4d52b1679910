"""How Redis is reached: sessions, connections, errors, wake-ups, and the doctor."""
