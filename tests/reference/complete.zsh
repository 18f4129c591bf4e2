# complete.zsh SCRIPT: completes each line of stdin, with the cursor at its end, as zsh does with SCRIPT (a
# file called _mailroom) loaded. Prints a line each: the candidates with a space between them.
#
# Completion wants the line editor, and that a terminal: an interactive zsh on a terminal of its own sources
# this file once more, completes all lines as soon as its editor starts, and ends.

if [[ ! -o interactive ]]; then
  zmodload zsh/zpty
  export MAILROOM_SCRIPT=${1:A} MAILROOM_FOLDER=$(mktemp -d)
  # Not in a trap for EXIT: the process of zpty would run it, too.
  {
    cat >$MAILROOM_FOLDER/lines
    zpty editor zsh -f -i
    zpty -w editor "source ${(q)0:A}"
    # What the terminal shows is of interest only if nothing comes of it.
    shown=
    while zpty -t editor; do
      if zpty -r editor chunk; then shown+=$chunk; fi
    done
    if [[ -e $MAILROOM_FOLDER/done ]]; then
      cat $MAILROOM_FOLDER/candidates
    else
      print -r -u 2 -- $shown
    fi
  } always {
    rm -rf -- $MAILROOM_FOLDER
  }
  exit
fi

fpath=(${MAILROOM_SCRIPT:h} $fpath)
autoload -Uz compinit
compinit -u -D

typeset -ga candidates
compadd() {
  # With one of these it adds nothing but fills or filters arrays.
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
    # A completion empties the list when it has called them.
    comppostfuncs=(show-nothing)
    zle collect-candidates
    print -r -- "${candidates[@]}"
  done <$MAILROOM_FOLDER/lines >$MAILROOM_FOLDER/candidates
  touch $MAILROOM_FOLDER/done
  exit
}
zle -N zle-line-init
