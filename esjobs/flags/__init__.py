"""Flags with memory: what became of a deviation from night to night, and what people said to it."""
