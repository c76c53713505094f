"""The commands, by what they are about; ``esjobs.cli`` puts them together."""
