# shellcheck shell=bash
# Sourced by scripts that say how long each of their steps took. Scripts that call each other share one list: the first
# of them makes the file that MAILROOM_STEP_TIMES names, and prints it at its end.

step_times_owner=no
if [[ -z ${MAILROOM_STEP_TIMES-} ]]; then
  step_times_owner=yes
  MAILROOM_STEP_TIMES=$(mktemp)
  export MAILROOM_STEP_TIMES
fi

# timed NAME COMMAND [ARG...]: runs COMMAND and notes how long it took; its status is COMMAND's.
timed() {
  local name=$1 status=0 began=${EPOCHREALTIME/[.,]/}
  shift
  "$@" || status=$?
  printf '%d %s\n' "$(((${EPOCHREALTIME/[.,]/} - began) / 100000))" "$name" >>"$MAILROOM_STEP_TIMES"
  return "$status"
}

# print_step_times: prints the list, if this script began it, and removes it.
print_step_times() {
  if [[ $step_times_owner == no ]]; then return 0; fi
  echo '== seconds of each step'
  awk '{ tenths = $1; $1 = ""; printf "%8.1f %s\n", tenths / 10, $0; sum += tenths }
    END { printf "%8.1f  in all\n", sum / 10 }' "$MAILROOM_STEP_TIMES"
  rm -f -- "$MAILROOM_STEP_TIMES"
  step_times_owner=no
}
