"""Completion scripts for shells. They start no program when you press the tab key.

Each script has a function that knows the words of every place, and one that finds out the place
where the cursor is. `@files` among the words stands for the names of files.
"""

from collections.abc import Callable, Iterable

from duequeue.cli.completing import Words

_BASH = """\
_duequeue_words() {
    case "$1" in
%s
        *) return 1 ;;
    esac
}

_duequeue() {
    local place="" word tried words number
    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
    for ((number = 1; number < COMP_CWORD; number++)); do
        word="${COMP_WORDS[number]}"
        tried="${place:+$place }$word"
        if [[ "$word" != -* ]] && _duequeue_words "$tried" > /dev/null; then
            place="$tried"
        fi
    done
    if [[ "$previous" != -* ]] || ! words="$(_duequeue_words "${place:+$place }$previous")"; then
        words="$(_duequeue_words "$place")"
    fi
    COMPREPLY=($(compgen -W "${words//@files/}" -- "$current"))
    if [[ "$words" == *@files* ]]; then
        COMPREPLY+=($(compgen -f -- "$current"))
    fi
}
"""

_ZSH = """\
autoload -U +X compinit && compinit -u
autoload -U +X bashcompinit && bashcompinit
"""

_FISH = """\
function __duequeue_words
    switch "$argv[1]"
%s
        case '*'
            return 1
    end
end

function __duequeue_complete
    set -l place ''
    set -l previous ''
    set -l given (commandline -opc)
    set -e given[1]
    for word in $given
        set -l tried (string trim -- "$place $word")
        if not string match -q -- '-*' $word; and __duequeue_words $tried > /dev/null
            set place $tried
        end
        set previous $word
    end
    set -l words
    if string match -q -- '-*' "$previous"
        set words (__duequeue_words (string trim -- "$place $previous"))
    end
    if test (count $words) -eq 0
        set words (__duequeue_words "$place")
    end
    if contains @files $words
        __fish_complete_path (commandline -ct)
    end
    string match -v @files -- $words
end

complete -c duequeue -f -a '(__duequeue_complete)'
"""


def bash(every: Iterable[Words]) -> str:
    """Return the script for bash."""
    return _bash_functions(every) + "complete -o filenames -F _duequeue duequeue\n"


def zsh(every: Iterable[Words]) -> str:
    """Return the script for zsh, which can run the functions of bash."""
    return _ZSH + _bash_functions(every) + "complete -F _duequeue duequeue\n"


def fish(every: Iterable[Words]) -> str:
    """Return the script for fish."""
    cases = (
        f"        case '{each.place}'\n            printf '%s\\n' {' '.join(_all(each))}"
        for each in every
    )
    return _FISH.replace("%s", "\n".join(cases), 1)


def _bash_functions(every: Iterable[Words]) -> str:
    cases = (f"        '{each.place}') echo '{' '.join(_all(each))}' ;;" for each in every)
    return _BASH.replace("%s", "\n".join(cases), 1)


def _all(words: Words) -> list[str]:
    return [*words.words, *(["@files"] if words.takes_files else [])]


SCRIPTS: dict[str, Callable[[Iterable[Words]], str]] = {"bash": bash, "fish": fish, "zsh": zsh}
