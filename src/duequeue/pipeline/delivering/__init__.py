"""The deliver job, which handles messages on executors."""
