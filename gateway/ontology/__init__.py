"""The vocabulary as data, and the one recogniser that reads documents and questions with it."""
