#!/bin/sh
# A sender for `mailroom collect --exec examples/senders/sender.sh`: appends each batch to a file, and acknowledges it.
# Replace deliver() by your own: it succeeds when the batch is delivered.
deliver() {
  printf '%s\n' "$1" >>"${SENDER_OUTPUT:-sent.jsonl}"
}

while IFS=' ' read -r batch attempt body; do
  # From its second attempt on, you may have the batch already.
  if reason=$(deliver "$body" 2>&1); then
    echo "ok $batch" >&3
  else
    echo "fail $batch * retry $(printf %s "$reason" | tr '\n' ' ')" >&3
  fi
done
