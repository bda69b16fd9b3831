"""Measuring: arrays of local days in, typed verdicts out. Reads no clock, file or database."""
