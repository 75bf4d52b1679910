"""The limits of the hardware and the database, and the algorithm that DueQueue started with."""
