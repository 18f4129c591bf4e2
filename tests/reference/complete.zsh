# complete.zsh SCRIPT: completes each line of stdin, with the cursor at its end, as zsh does with SCRIPT (a file
# called _mailroom) loaded. Prints the candidates of each line on one line, separated by spaces.
#
# Completion needs the line editor, and the line editor needs a terminal. An interactive zsh on a pseudo-terminal
# therefore sources this file again, completes all lines as soon as its editor starts, and exits.

if [[ ! -o interactive ]]; then
  zmodload zsh/zpty
  export MAILROOM_SCRIPT=${1:A} MAILROOM_DIRECTORY=$(mktemp -d)
  # Not in a trap for EXIT: the process of zpty would run it as well.
  {
    cat >$MAILROOM_DIRECTORY/lines
    zpty editor zsh -f -i
    zpty -w editor "source ${(q)0:A}"
    # Print the terminal's output only when there is no result.
    shown=
    while zpty -t editor; do
      if zpty -r editor chunk; then shown+=$chunk; fi
    done
    if [[ -e $MAILROOM_DIRECTORY/done ]]; then
      cat $MAILROOM_DIRECTORY/candidates
    else
      print -r -u 2 -- $shown
    fi
  } always {
    rm -rf -- $MAILROOM_DIRECTORY
  }
  exit
fi

fpath=(${MAILROOM_SCRIPT:h} $fpath)
autoload -Uz compinit
compinit -u -D

typeset -ga candidates
compadd() {
  # With one of these options compadd adds nothing; it fills or filters arrays.
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
    builtin compadd "$@"
    return
  fi
  local -a found
  builtin compadd -A found "$@"
  candidates+=("${found[@]}")
  builtin compadd "$@"
}
show-nothing() { compstate[list]='' compstate[insert]='' }
zle -C collect-candidates list-choices _main_complete

zle-line-init() {
  local line
  while IFS= read -r line; do
    BUFFER=$line
    CURSOR=$#line
    candidates=()
    # A completion clears the list after it has called these functions.
    comppostfuncs=(show-nothing)
    zle collect-candidates
    print -r -- "${candidates[@]}"
  done <$MAILROOM_DIRECTORY/lines >$MAILROOM_DIRECTORY/candidates
  touch $MAILROOM_DIRECTORY/done
  exit
}
zle -N zle-line-init
