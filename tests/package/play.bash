# shellcheck shell=bash
# What the scripts that play packages on a bare Debian have in common; they set top and here before.

# The mail server of the test. The sender connects to it as if it were the relay of the document.
relay=
maildir=/srv/maildir
passed=0

fail() {
  printf '%s: %s\n' "$(basename -- "$0")" "$*" >&2
  systemctl --no-pager --full status 'mailroom-*' >&2 || true
  journalctl --no-pager --lines 60 >&2 || true
  exit 1
}

# check TEXT COMMAND...: fails unless COMMAND succeeds within 60 seconds.
check() {
  local text=$1 end=$((SECONDS + 60))
  shift
  until "$@"; do
    if [[ $SECONDS -ge $end ]]; then fail "not true: $text"; fi
    sleep 0.2
  done
  printf 'ok: %s\n' "$text"
  passed=$((passed + 1))
}

# say COMMAND...: runs a command as the document types it, in the directory of root.
say() {
  printf '# %s\n' "$1"
  (cd /root && bash -euo pipefail -c "$1") || fail 'these commands failed'
}

property() { systemctl show --property "$2" --value "$1"; }
is_property() { [[ $(property "$1" "$2") == "$3" ]]; }
mails() { find "$maildir/new" -type f | wc -l; }
has_mails() { [[ $(mails) -eq $1 ]]; }
# grep ends at the first match. In a pipe that would end journalctl by a signal, which counts as a failure.
journal_has() { grep -qF -- "$1" < <(journalctl --no-pager -o cat "${@:2}"); }

# start_relay: sets relay, and puts the mails that come there into $maildir.
start_relay() {
  "$top/scripts/with-mailbox" --maildir "$maildir" bash -c 'echo "$MAILROOM_TEST_RELAY" >/srv/relay; exec sleep infinity' &
  check 'the mail server runs' test -s /srv/relay
  relay=$(cat /srv/relay)
}

# begin COMMAND ARG...: for the arguments of a script that is given a directory with packages: COMMAND DIRECTORY beside systemd.
begin() {
  local command=$1
  shift
  case ${1-} in
    --inside) "$command" "$2" ;;
    /*)
      # Nobody is there to say yes.
      echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/90play
      apt-get update -q >/dev/null
      apt-get install -y --no-install-recommends systemd-sysv >/dev/null
      exec "$here/with-systemd" "$here/$(basename -- "$0")" --inside "$1"
      ;;
    *)
      printf '%s: a directory with packages is needed\nhint: scripts/on-debian --share DIRECTORY SUITE %s /srv/shared\n' "$(basename -- "$0")" "$0" >&2
      exit 2
      ;;
  esac
}
