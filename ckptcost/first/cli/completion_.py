"""`ckptcost completion`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

EPILOG = """\
in ~/.bashrc:                   eval "$(ckptcost completion bash)"
in ~/.zshrc, after compinit:    source <(ckptcost completion zsh)
in ~/.config/fish/config.fish:  ckptcost completion fish | source
Tiers, sites, models and presets are those of the moment, your own included.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.cli import output
    from ckptcost.first.cli.main import COMMANDS, VERBS, parser_for

    commands = [
        line_of(name, about, parser_for(name)) for name, about in (COMMANDS | VERBS).items()
    ]
    output.write([SHELLS[options.shell](commands, lists())], None)
    return 0


TIER, SITE, PRESET, CHECKPOINT = "tier", "site", "scenario", "checkpoint"
FILE, DIRECTORY, PROGRAM = "file", "directory", "program"
"""places where names of the machine are due"""

_BY_FLAG = {
    "--tier": (TIER,),
    "--against": (TIER,),
    "--site": (SITE,),
    "--model": (CHECKPOINT,),
    "--set": ("key",),
    "--with": ("key",),
    "--to": ("export",),
    "--meters": ("meters",),
}
_BY_METAVAR = {
    "FILE|PRESET": (PRESET, FILE),
    "SCENARIO": (PRESET, FILE),
    "NAME|FILE": ("claim", FILE),
    "FILE": (FILE,),
    "PATH": (FILE,),
    "SOURCE": ("last", FILE),
    "OLD": (FILE,),
    "NEW": (FILE,),
    "RUN": ("last", FILE),
    "DIR": (DIRECTORY,),
    "STORE": (DIRECTORY,),
    "-- COMMAND ...": (PROGRAM,),
}
_BY_PLACE = {
    ("catalog", "kind"): ("kind",),
    ("check", "file"): (FILE,),
    ("init", "file"): (FILE,),
    ("solve", "what"): ("unknown",),
}


class Slot(NamedTuple):
    """What may stand in one place: words of lists, by their names, and choices of its own."""

    lists: tuple[str, ...]
    choices: tuple[str, ...] = ()
    many: bool = False


class CompletionFlag(NamedTuple):
    names: tuple[str, ...]
    slot: Slot | None
    """None where no value follows, or need not"""
    help: str


class CompletionLine(NamedTuple):
    """One command: its words, its flags, its places in order."""

    command: str
    about: str
    flags: tuple[CompletionFlag, ...]
    places: tuple[Slot, ...]


def slot_of(command: str, action: argparse.Action) -> Slot:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    lists = _BY_PLACE.get((command, action.dest), ())
    for name in action.option_strings:
        lists = lists or _BY_FLAG.get(name, ())
    choices = tuple(str(each) for each in action.choices or ())
    return Slot(lists or _BY_METAVAR.get(metavar, ()), choices, action.nargs in ("*", "+", "..."))


def line_of(command: str, about: str, parser: argparse.ArgumentParser) -> CompletionLine:
    flags, places = [], []
    for action in parser._actions:
        if action.option_strings:
            slot = None if action.nargs in (0, "?") else slot_of(command, action)
            said = " ".join((action.help or "").replace("%%", "%").split())
            flags.append(CompletionFlag(tuple(action.option_strings), slot, said))
        else:
            places.append(slot_of(command, action))
    return CompletionLine(command, about, tuple(flags), tuple(places))


def lists() -> dict[str, list[str]]:
    """The words that several places share."""
    from ckptcost.first.catalog.keys import KEYS
    from ckptcost.first.catalog.store import KINDS, Catalog
    from ckptcost.first.exports.formats import FORMATS
    from ckptcost.first.jobs.solve import KNOBS, RANGES

    catalog = Catalog()
    kinds = (TIER, SITE, PRESET, CHECKPOINT, "claim")
    return {
        **{kind: catalog.ids(kind) for kind in kinds},
        "kind": [*KINDS, "accelerator", "grid", "source"],
        "export": list(FORMATS),
        "key": [f"{section}.{key}=" for section, keys in KEYS.items() for key in keys],
        "unknown": [*KNOBS, *RANGES],
        "meters": ["auto", "none", "simulated"],
        "last": ["last"],
    }


def _words_of(slot: Slot) -> Iterator[str]:
    """As the shells' functions know them: names of lists with a colon before, choices bare."""
    yield from (f":{name}" for name in slot.lists)
    yield from slot.choices


def _cases(entries: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Arms of a `case` of any POSIX shell; what says nothing is left out."""
    arms = []
    for pattern, words in entries:
        if said := " ".join(words):
            arms.append(f'    {pattern}) echo "{said}" ;;\n')
    return "".join(arms)


def _functions(commands: Iterable[CompletionLine], more: dict[str, list[str]]) -> str:
    """Functions that bash and zsh share: which words may follow."""
    first: list[str] = []
    verbs: dict[str, list[str]] = {}
    flags: list[tuple[str, list[str]]] = []
    values: list[tuple[str, list[str]]] = []
    places: list[tuple[str, list[str]]] = []
    for line in commands:
        command, _, verb = line.command.partition(" ")
        if verb:
            verbs.setdefault(command, []).append(verb)
        else:
            first.append(command)
        flags.append((f'"{line.command}"', [name for flag in line.flags for name in flag.names]))
        values += _values(line)
        places += _places(line)
    return f"""\
_ckptcost_list() {{
  case "$1" in
{_cases((name, words) for name, words in more.items())}  esac
}}
_ckptcost_verbs() {{
  case "$1" in
    "") echo "{" ".join([*first, "--help", "--version", "--debug"])}" ;;
{_cases((f'"{name}"', words) for name, words in verbs.items())}  esac
}}
_ckptcost_flags() {{
  case "$1" in
{_cases(flags)}  esac
}}
# `:value` at the end: something follows the flag, whatever it is
_ckptcost_value() {{
  case "$1" in
{_cases(values)}  esac
}}
_ckptcost_place() {{
  case "$1" in
{_cases(places)}  esac
}}
"""


def _values(line: CompletionLine) -> Iterator[tuple[str, list[str]]]:
    """What may follow each flag."""
    for flag in line.flags:
        if flag.slot is not None:
            pattern = "|".join(f'"{line.command} {name}"' for name in flag.names)
            yield pattern, [*_words_of(flag.slot), ":value"]


def _places(line: CompletionLine) -> Iterator[tuple[str, list[str]]]:
    for number, slot in enumerate(line.places):
        pattern = f'"{line.command} "*' if slot.many else f'"{line.command} {number}"'
        yield pattern, list(_words_of(slot))


_SHARED = """\
# every word that may stand where the cursor is, one a line; :file, :directory and :program
# stand for names. $1: the word at the cursor, then the words before it
_ckptcost_next() {
  local cursor="$1" command="" flag="" place=0 after=0 dashes=0 word found
  shift
  for word in "$@"; do
    if [ -n "$flag" ]; then flag=""
    elif [ "$dashes" = 1 ]; then :
    elif [ -z "$command" ] && [ "$word" = --debug ]; then :
    elif [ "$word" = -- ]; then dashes=1
    elif [ -z "$command" ]; then
      case "$word" in
        -*) command=screen; [ -n "$(_ckptcost_value "screen $word")" ] && flag="$word" ;;
        *) command="$word" ;;
      esac
    else
      case "$word" in
        -*=*) : ;;
        -*) [ -n "$(_ckptcost_value "$command $word")" ] && flag="$word" ;;
        *)
          case "$after $(_ckptcost_verbs "$command") " in
            0*" $word "*) command="$command $word" ;;
            *) place=$((place + 1)) ;;
          esac ;;
      esac
      after=1
    fi
  done
  if [ "$dashes" = 1 ]; then found=":program"
  elif [ -n "$flag" ]; then found="$(_ckptcost_value "$command $flag")"
  elif [ -z "$command" ]; then found="$(_ckptcost_verbs "") $(_ckptcost_flags screen)"
  else
    case "$cursor" in
      -*) found="$(_ckptcost_flags "$command")" ;;
      *)
        found="$(_ckptcost_place "$command $place")"
        [ "$after" = 0 ] && found="$found $(_ckptcost_verbs "$command")" ;;
    esac
  fi
  for word in $(echo "$found"); do
    case "$word" in
      :file|:directory|:program) echo "$word" ;;
      :value) : ;;
      :*) for found in $(_ckptcost_list "${word#:}"); do echo "$found"; done ;;
      *) echo "$word" ;;
    esac
  done
}
"""

_BASH = """\
_ckptcost() {
  local cursor="${COMP_WORDS[COMP_CWORD]}" word lines names
  local -a before=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    # bash takes --flag=value for three words
    [ "$word" = "=" ] || before+=("$word")
  done
  [ "$cursor" = "=" ] && cursor=""
  lines="$(_ckptcost_next "$cursor" "${before[@]}")"
  names="$(printf '%s\\n' "$lines" | grep -v '^:')"
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$names" -- "$cursor"))
  case "$lines" in *:file*|*:directory*) compopt -o filenames ;; esac
  case "$lines" in *:program*) COMPREPLY+=($(compgen -c -- "$cursor")) ;; esac
  case "$lines" in *:file*|*:program*) COMPREPLY+=($(compgen -f -- "$cursor")) ;; esac
  case "$lines" in *:directory*) COMPREPLY+=($(compgen -d -- "$cursor")) ;; esac
  case "${COMPREPLY[0]}" in *=) compopt -o nospace ;; esac
}
complete -F _ckptcost ckptcost
"""

_ZSH = """\
_ckptcost() {
  setopt localoptions shwordsplit
  local cursor="${words[CURRENT]}" part
  local -a before lines names
  before=("${(@)words[2,CURRENT-1]}")
  if [[ "$cursor" == --*=* ]]; then
    before+=("${cursor%%=*}")
    part="${cursor%%=*}="
    compset -P '*='
    cursor="${cursor#*=}"
  fi
  lines=("${(@f)$(_ckptcost_next "$cursor" "${before[@]}")}")
  names=("${(@)lines:#:*}")
  compadd -S '' -- "${(@M)names:#*=}"
  compadd -- "${(@)names:#*=}"
  [[ "${lines[(r):file]}" == :file ]] && _files
  [[ "${lines[(r):directory]}" == :directory ]] && _files -/
  [[ "${lines[(r):program]}" == :program ]] && { _command_names -e; _files }
  return 0
}
# read from fpath, the file is the function itself, at the first tab
if [[ "${zsh_eval_context[-1]}" == loadautofunc ]]; then _ckptcost "$@"
else compdef _ckptcost ckptcost; fi
"""


def bash(commands: Iterable[CompletionLine], more: dict[str, list[str]]) -> str:
    return _functions(commands, more) + _SHARED + _BASH


def zsh(commands: Iterable[CompletionLine], more: dict[str, list[str]]) -> str:
    shared = _SHARED.replace(
        'local cursor="$1"', 'setopt localoptions shwordsplit; local cursor="$1"'
    )
    return "#compdef ckptcost\n" + _functions(commands, more) + shared + _ZSH


def _quoted(text: str) -> str:
    """For fish, whose single quotes know two escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(commands: Iterable[CompletionLine], more: dict[str, list[str]]) -> str:
    lines = ["complete -c ckptcost -f\n"]
    commands = list(commands)
    pairs = [line.command.split(" ") for line in commands if " " in line.command]
    for line in commands:
        command, _, verb = line.command.partition(" ")
        if verb:
            others = [other for of, other in pairs if of == command]
            here = f"__fish_seen_subcommand_from {command}; and not __fish_seen_subcommand_from "
            lines.append(_fish("-n", here + " ".join(others), "-a", verb, "-d", line.about))
            here = f"__fish_seen_subcommand_from {command}; and __fish_seen_subcommand_from {verb}"
        else:
            lines.append(_fish("-n", "__fish_use_subcommand", "-a", command, "-d", line.about))
            here = f"__fish_seen_subcommand_from {command}"
        for flag in line.flags:
            words = ["-n", here, *_fish_names(flag.names), "-d", flag.help]
            lines.append(_fish(*words, *_fish_slot(flag.slot, more)))
        for slot in line.places:
            if given := [word for word in _fish_slot(slot, more) if word not in _FISH_VALUE]:
                lines.append(_fish("-n", here, *given))
    return "".join(lines)


def _fish_names(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from ("-l", name[2:]) if name.startswith("--") else ("-s", name[1:])


def _fish_slot(slot: Slot | None, more: dict[str, list[str]]) -> list[str]:
    if slot is None:
        return []
    words = [*slot.choices, *(word for name in slot.lists for word in more.get(name, ()))]
    if DIRECTORY in slot.lists:
        words.append("(__fish_complete_directories)")
    found = ["-a", " ".join(words)] if words else []
    return [*found, "-r", "-F"] if {FILE, PROGRAM} & set(slot.lists) else [*found, "-x"]


_FISH_VALUE = ("-r", "-x")
"""a value follows: any file besides, or nothing but what is named"""
_FISH_OWN = ("-n", "-a", "-d", "-l", "-s", "-F", *_FISH_VALUE)
"""what is fish's and not ours: a help text may begin with a dash, too"""


def _fish(*words: str) -> str:
    said = (word if word in _FISH_OWN else _quoted(word) for word in words)
    return " ".join(("complete -c ckptcost", *said)) + "\n"


SHELLS: dict[str, Callable[[Iterable[CompletionLine], dict[str, list[str]]], str]] = {
    "bash": bash,
    "zsh": zsh,
    "fish": fish,
}
