#!/usr/bin/env bash
# Garage of one node on loopback, as a store for tests.
# usage: garage.sh up|down     `up` prints the environment that reaches it
# Builds it with cargo where it is missing, which takes minutes. Everything is in $STORES_HOME/garage.
set -euo pipefail
. "$(dirname "$0")/common.sh"
home=$STORES_HOME/garage

stop() { stop_all "$home/pid"; rm -rf "$home"; }

case ${1:-} in
  up) ;;
  down) stop; exit ;;
  *) echo "usage: garage.sh up|down" >&2; exit 2 ;;
esac
crate garage 2.5.0 --no-default-features --features bundled-libs,sqlite
stop
mkdir -p "$home"
port=$(free_port)
cat >"$home/garage.toml" <<CONF
metadata_dir = "$home/meta"
data_dir = "$home/data"
db_engine = "sqlite"
replication_factor = 1
rpc_bind_addr = "127.0.0.1:$(free_port)"
rpc_secret = "$(printf '%064d' 1)"
[s3_api]
s3_region = "us-east-1"
api_bind_addr = "127.0.0.1:$port"
CONF
garage() { "$STORES_HOME/bin/garage" -c "$home/garage.toml" "$@" >>"$home/log" 2>&1; }
RUST_LOG=garage=warn setsid "$STORES_HOME/bin/garage" -c "$home/garage.toml" server >"$home/log" 2>&1 </dev/null &
echo $! >"$home/pid"
wait_for "http://127.0.0.1:$port/" "$home/log"
key=GK$(printf '%024d' 1) secret=$(printf '%064d' 2)
(
  until garage status; do sleep 0.5; done
  node=$("$STORES_HOME/bin/garage" -c "$home/garage.toml" node id -q | cut -d@ -f1)
  garage layout assign -z one -c 1G "$node"
  garage layout apply --version 1
  garage key import --yes "$key" "$secret" -n tests
  for bucket in tf-s3-stores tf-s3-stores-other; do
    garage bucket create $bucket
    garage bucket allow --read --write --owner $bucket --key "$key"
  done
) || { cat "$home/log" >&2; exit 1; }
print_environment "http://127.0.0.1:$port" "$key" "$secret" "Garage 2.5"
