"""The commands, by what they are about; ``esjobs.cli.main`` puts them together."""
