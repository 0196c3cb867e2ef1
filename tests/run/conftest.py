"""The command line, for all tests here."""

from tests.cli.command_line import phyxel as phyxel
