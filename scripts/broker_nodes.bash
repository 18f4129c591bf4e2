# shellcheck shell=bash
# Sourced by scripts that run three nodes of a broker as plain processes. Node N is started by "$directory/start" N,
# which writes its process id into "$directory/nodeN.pid"; a test that has killed a node starts it again in the same
# way.

# is_node PID: succeeds if that process is one of the nodes here, and not another that has its number now.
is_node() {
  local _
  for _ in {1..10}; do
    # shellcheck disable=SC2154  # the script that sources this sets it
    if grep -qF -- "$directory" "/proc/$1/cmdline" "/proc/$1/environ" 2>/dev/null; then return 0; fi
    if [[ ! -e /proc/$1 ]]; then return 1; fi
    sleep 0.01 # a process that is starting a program has neither for a moment
  done
  return 1
}

# end_node N SIGNAL: sends the signal to the process group of node N.
end_node() {
  local pid
  pid=$(cat "$directory/node$1.pid" 2>/dev/null) || return 0
  if is_node "$pid"; then kill "-$2" -- "-$pid" 2>/dev/null || true; fi
}

# end_nodes: ends all nodes, also stopped ones.
end_nodes() {
  local node pid
  for node in 1 2 3; do end_node "$node" KILL; done
  for node in 1 2 3; do
    pid=$(cat "$directory/node$node.pid" 2>/dev/null) || continue
    for _ in {1..100}; do
      if ! is_node "$pid"; then break; fi
      sleep 0.05
    done
  done
}

# make_certificates: writes ca.pem, and server.pem with server-key.pem, a certificate for the name localhost only.
make_certificates() {
  (
    cd "$directory"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj '/CN=test authority' -keyout ca-key.pem -out ca.pem
    openssl req -newkey rsa:2048 -nodes -subj '/CN=test broker' -keyout server-key.pem -out server.csr
    printf 'subjectAltName = DNS:localhost\n' >names
    openssl x509 -req -in server.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 2 -extfile names -out server.pem
  ) >"$directory/openssl.log" 2>&1 || {
    cat "$directory/openssl.log" >&2
    fail 'OpenSSL made no certificate' 'see its messages above'
  }
}

# answers PORT PATH TEXT: succeeds if an HTTP server there answers with TEXT within five seconds.
answers() {
  local answer=''
  { exec {connection}<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
  printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&"$connection" || true
  read -r -d '' -t 5 answer <&"$connection" || true
  exec {connection}>&-
  [[ $answer == *"$3"* ]]
}

# is_open PORT: succeeds if something listens there.
is_open() {
  { exec {connection}<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
  exec {connection}>&-
}

# all_free PORT...: succeeds if nothing listens there.
all_free() {
  local port
  for port; do
    if is_open "$port"; then return 1; fi
  done
}
