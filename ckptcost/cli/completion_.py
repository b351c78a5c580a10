"""`ckptcost completion`."""

from __future__ import annotations

import argparse

EPILOG = """\
in ~/.bashrc:                   eval "$(ckptcost completion bash)"
in ~/.zshrc, after compinit:    source <(ckptcost completion zsh)
in ~/.config/fish/config.fish:  ckptcost completion fish | source
Tiers, sites, models and presets are those of the moment, your own included.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")


def run(options: argparse.Namespace) -> int:
    from ckptcost.cli import output
    from ckptcost.cli.completing import SHELLS, line_of, lists
    from ckptcost.cli.main import COMMANDS, VERBS, parser_for

    commands = [
        line_of(name, about, parser_for(name)) for name, about in (COMMANDS | VERBS).items()
    ]
    output.write([SHELLS[options.shell](commands, lists())], None)
    return 0
