# complete.bash SCRIPT: completes each line of stdin, with the cursor at its end, as bash does with SCRIPT loaded.
# Prints the candidates of each line on one line, separated by spaces.
set -u
# shellcheck source=/dev/null
source "$1"

# There is no compopt outside of a completion; record the requested options instead.
files=''
compopt() {
  case $* in
    '-o default') files=-f ;;
    '-o dirnames') files=-d ;;
  esac
}

# Sets COMP_WORDS and COMP_CWORD to the words of $1 as readline splits it.
split() {
  local -a typed
  local word part
  read -ra typed <<<"$1"
  if [[ $1 == *' ' ]]; then typed+=(''); fi
  COMP_WORDS=()
  for word in "${typed[@]}"; do
    while [[ $word == *[=:]* ]]; do
      part=${word%%[=:]*}
      if [[ -n $part ]]; then COMP_WORDS+=("$part"); fi
      word=${word#"$part"}
      COMP_WORDS+=("${word:0:1}")
      word=${word:1}
      if [[ -z $word ]]; then continue 2; fi
    done
    COMP_WORDS+=("$word")
  done
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
}

while IFS= read -r line; do
  split "$line"
  files=''
  _mailroom
  if [[ -n $files ]]; then
    current=${COMP_WORDS[COMP_CWORD]}
    mapfile -t COMPREPLY < <(compgen "$files" -- "${current#[=:]}")
  fi
  printf '%s\n' "${COMPREPLY[*]}"
done
