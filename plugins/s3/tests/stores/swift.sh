#!/usr/bin/env bash
# OpenStack Swift with its S3 API on loopback, of one device, as a store for tests.
# usage: swift.sh up|down     `up` prints the environment that reaches it
# Needs root, and installs Debian's packages where they are missing. Everything is in $STORES_HOME/swift.
set -euo pipefail
. "$(dirname "$0")/common.sh"
home=$STORES_HOME/swift

stop() { stop_all "$home"/run/{proxy,account,container,object,memcached}.pid; rm -rf "$home"; }

case ${1:-} in
  up) ;;
  down) stop; exit ;;
  *) echo "usage: swift.sh up|down" >&2; exit 2 ;;
esac
packages swift-proxy-server swift-proxy swift-account swift-container swift-object memcached python3-memcache curl
stop
mkdir -p "$home"/{etc,srv/one,cache,run,log}
cd "$home/etc"
cache=$(free_port) proxy=$(free_port)
cat >swift.conf <<CONF
[swift-hash]
swift_hash_path_prefix = before
swift_hash_path_suffix = after
[storage-policy:0]
name = one
default = yes
[swift-constraints]
max_header_size = 32768
CONF
for server in account container object; do
  port=$(free_port)
  {
    swift-ring-builder $server.builder create 6 1 1
    swift-ring-builder $server.builder add --region 1 --zone 1 --ip 127.0.0.1 --port "$port" --device one --weight 1
    # 1: done, with a remark.
    swift-ring-builder $server.builder rebalance || [ $? = 1 ]
  } >"$home/log/rings" 2>&1 || { cat "$home/log/rings" >&2; exit 1; }
  cat >$server-server.conf <<CONF
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $port
user = root
swift_dir = $home/etc
devices = $home/srv
mount_check = false
workers = 1
log_address =
recon_cache_path = $home/cache
[pipeline:main]
pipeline = $server-server
[app:$server-server]
use = egg:swift#$server
allow_versions = true
CONF
done
cat >proxy-server.conf <<CONF
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $proxy
user = root
swift_dir = $home/etc
workers = 2
[pipeline:main]
pipeline = catch_errors cache listing_formats bulk s3api tempauth copy slo dlo symlink proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:$cache
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
dns_compliant_bucket_names = false
auth_pipeline_check = true
[filter:tempauth]
use = egg:swift#tempauth
user_tests_access = secret .admin
reseller_prefix = AUTH
CONF
for filter in catch_errors listing_formats bulk copy slo dlo symlink; do
  printf '[filter:%s]\nuse = egg:swift#%s\n' $filter $filter
done >>proxy-server.conf
export SWIFT_CONF_DIR=$home/etc
memcached -u root -l 127.0.0.1 -p "$cache" -m 64 -d -P "$home/run/memcached.pid"
for server in account container object proxy; do
  # A session of its own, to be ended with all its workers.
  setsid swift-$server-server $server-server.conf >"$home/log/$server" 2>&1 </dev/null &
  echo $! >"$home/run/$server.pid"
done
wait_for "http://127.0.0.1:$proxy/" "$home/log"
token=$(curl --silent --include --header 'X-Storage-User: tests:access' --header 'X-Storage-Pass: secret' \
  "http://127.0.0.1:$proxy/auth/v1.0" | tr -d '\r' | sed -n 's/^X-Auth-Token: //p')
make_buckets "http://127.0.0.1:$proxy/v1/AUTH_tests" --header "X-Auth-Token: $token"
print_environment "http://127.0.0.1:$proxy" tests:access secret "Swift 2.30"
