# What the scripts share that start a store.

STORES_HOME=${STORES_HOME:-${CARGO_TARGET_DIR:-$(cd "$(dirname "$0")/../../../.." && pwd)/target}/stores}
mkdir -p "$STORES_HOME"
STORES_HOME=$(cd "$STORES_HOME" && pwd)

# Installs the packages unless there is the command that is named first.
packages() {
  local command=$1
  shift
  command -v "$command" >/dev/null && return
  local as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  # None of them is to start anything.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# Builds a program of a crate, unless it is there: name, version, and cargo's arguments.
crate() {
  local name=$1 version=$2
  shift 2
  [ -e "$STORES_HOME/bin/.$name-$version" ] && return
  # The tests wait for the store, so it is optimised a little, and its parts in parallel.
  CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$STORES_HOME/build \
    cargo install --quiet --locked --debug --force --root "$STORES_HOME" "$name@$version" "$@" >&2
  touch "$STORES_HOME/bin/.$name-$version"
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Ends what these files name, and its session if it leads one.
stop_all() {
  local file pid
  for file in "$@"; do
    [ -e "$file" ] || continue
    pid=$(cat "$file")
    kill -9 -- "-$pid" 2>/dev/null || kill -9 "$pid" 2>/dev/null || true
  done
}

# Waits until the address answers.
wait_for() {
  local _
  for _ in $(seq 120); do
    curl --silent --max-time 2 --output /dev/null "$1" && return
    sleep 0.5
  done
  echo "$1 does not answer; the logs are in $2" >&2
  return 1
}

# Makes the buckets of the tests: a PUT of each with these arguments of curl and this URL in front of the name.
make_buckets() {
  local url=$1 bucket _ answer
  shift
  for bucket in tf-s3-stores tf-s3-stores-other; do
    for _ in $(seq 60); do
      answer=$(ask "$@" --request PUT "$url/$bucket") || true
      case $answer in 20?) continue 2 ;; esac
      sleep 1
    done
    echo "$url/$bucket is not made: HTTP $answer" >&2
    return 1
  done
}

# Asks with curl and prints the HTTP status only.
ask() {
  curl --silent --max-time 10 --output /dev/null --write-out '%{http_code}' "$@"
}

# Prints what reaches the store: address, access key, secret key, and its name in SEMANTICS.md.
print_environment() {
  printf 'AWS_ENDPOINT_URL=%s\nAWS_ACCESS_KEY_ID=%s\nAWS_SECRET_ACCESS_KEY=%s\nS3_TEST_STORE="%s"\n' "$@"
  printf 'AWS_REGION=us-east-1\nAWS_EC2_METADATA_DISABLED=true\n'
}
