# shellcheck shell=bash
# Sourced by scripts that run a command beside a server of theirs.

# run_command COMMAND [ARG...]: runs COMMAND, passes INT, TERM and HUP on to it, and exits with its status. The
# caller's EXIT trap cleans up.
run_command() {
  child=
  signalled=
  trap 'pass_on INT' INT
  trap 'pass_on TERM' TERM
  trap 'pass_on HUP' HUP

  # In the background, because bash runs a trap only after the foreground command has ended; env restores SIGINT and
  # SIGQUIT, which bash ignores there.
  env --default-signal=INT,QUIT -- "$@" <&0 &
  child=$!
  if [[ -n $signalled ]]; then kill -TERM "$child" 2>/dev/null || true; fi
  local status=0
  while :; do
    signalled=
    status=0
    wait "$child" || status=$?
    if [[ -z $signalled ]]; then break; fi
  done
  exit "$status"
}

# shellcheck disable=SC2317  # traps call it
pass_on() {
  signalled=yes
  # Ctrl-C at a terminal reaches the whole process group: a second SIGINT would mean "stop hard".
  if [[ $1 == INT ]] && awk '{ sub(/.*\) /, ""); exit $3 != $6 }' "/proc/$$/stat"; then return 0; fi
  if [[ -n $child ]]; then kill "-$1" "$child" 2>/dev/null || true; fi
}
